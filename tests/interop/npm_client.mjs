// A client of 2025-11-25 made of npm's @modelcontextprotocol/sdk 1.x, as any user of it would write one:
//
//     node npm_client.mjs FOLDER http http://127.0.0.1:8000/mcp
//     node npm_client.mjs FOLDER stdio mcp-tasks serve tests/interop/farm.py:server --legacy serve --stdio
//
// FOLDER is where the SDK is installed. It goes through the scenarios of sdk1_client.py and prints a report of
// the same form; test_legacy_clients.py says what should come of them.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';

const PATIENCE_MS = 60_000;
const [folder, way, ...target] = process.argv.slice(2);
const sdkFolder = join(folder, 'node_modules', '@modelcontextprotocol', 'sdk');
const from = (path) => import(pathToFileURL(join(sdkFolder, 'dist', 'esm', path)).href);

const { Client } = await from('client/index.js');
const { StreamableHTTPClientTransport } = await from('client/streamableHttp.js');
const { StdioClientTransport } = await from('client/stdio.js');
const {
    CallToolResultSchema,
    CreateMessageRequestSchema,
    CreateTaskResultSchema,
    ElicitRequestSchema,
    ListRootsRequestSchema,
    ToolListChangedNotificationSchema,
} = await from('types.js');

// -- a user with a client -----------------------------------------------------------------------------------

const asked = [];
const news = [];
const capabilities = { elicitation: { form: {} }, sampling: {}, roots: {} };
const client = new Client({ name: 'npm-client', version: '1' }, { capabilities });
const tasks = client.experimental.tasks;

client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
    asked.push(params.message);
    const values = { channel: 'public', copies: 3, sure: true };
    const names = Object.keys(params.requestedSchema.properties);
    return { action: 'accept', content: Object.fromEntries(names.map((name) => [name, values[name]])) };
});
client.setRequestHandler(CreateMessageRequestSchema, () => {
    return { role: 'assistant', content: { type: 'text', text: 'Yes.' }, model: 'none' };
});
client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [{ uri: 'file:///farm' }] }));
client.setNotificationHandler(ToolListChangedNotificationSchema, ({ method }) => {
    news.push(method);
});

const call = (name, args = {}) => client.callTool({ name, arguments: args });

async function errorOf(promise) {
    try {
        await promise;
    } catch ({ code, message, data }) {
        return { code, message, data };
    }
    throw new Error('there was no error');
}

// Open a session of a caller who has a name.
async function named(user) {
    const other = new Client({ name: 'npm-client', version: '1' });
    const requestInit = { headers: { 'X-User': user } };
    await other.connect(new StreamableHTTPClientTransport(new URL(target[0]), { requestInit }));
    return other;
}

// Call a tool as a task, with what the SDK has for that, and return everything it says on the way.
async function stream(name, args = {}, options = { task: { ttl: 90_000 } }) {
    const said = [];
    for await (const message of tasks.callToolStream({ name, arguments: args }, CallToolResultSchema, options)) {
        said.push(message);
    }
    const created = said.find(({ type }) => type === 'taskCreated')?.task;
    const statuses = said.filter(({ type }) => type === 'taskStatus').map(({ task }) => task.status);
    const { type, result, error } = said.at(-1);
    return { created, statuses, end: type, result, error };
}

// -- scenarios ----------------------------------------------------------------------------------------------

const scenarios = {
    connect: () => ({
        capabilities: client.getServerCapabilities(),
        serverInfo: client.getServerVersion(),
        instructions: client.getInstructions(),
    }),
    ping: () => client.ping(),
    tools: async () => {
        const { tools } = await client.listTools();
        return Object.fromEntries(tools.map(({ name, execution }) => [name, execution?.taskSupport ?? null]));
    },
    plain: () => call('greet', { name: 'Žofie' }),
    plain_tool_error: () => call('refuse'),
    plain_questions: async () => {
        asked.length = 0;
        const result = await call('publish');
        return { asked: [...asked], result };
    },
    three_kinds: () => call('survey'),
    task: async () => {
        const { created, statuses, result } = await stream('render');
        return { created, last: statuses.at(-1), result };
    },
    task_with_questions: async () => {
        asked.length = 0;
        const { created, result } = await stream('commission');
        const { status } = await tasks.getTask(created.taskId);
        return { asked: [...asked].sort(), result, last: status };
    },
    task_after_questions: async () => {
        asked.length = 0;
        const { result } = await stream('book');
        return { asked: [...asked], result };
    },
    task_with_tool_error: async () => {
        const { created, statuses } = await stream('spoil');
        return { last: statuses.at(-1), result: await tasks.getTaskResult(created.taskId, CallToolResultSchema) };
    },
    task_failed: async () => {
        const { created, statuses } = await stream('collapse');
        return { last: statuses.at(-1), error: await errorOf(tasks.getTaskResult(created.taskId, CallToolResultSchema)) };
    },
    task_cancelled: async () => {
        const calling = tasks.callToolStream({ name: 'idle' }, CallToolResultSchema, { task: {} });
        const { taskId } = (await calling.next()).value.task;
        const waiting = errorOf(tasks.getTaskResult(taskId, CallToolResultSchema));
        await sleep(100);
        const cancelled = await tasks.cancelTask(taskId);
        const waited = [await waiting];
        const again = await errorOf(tasks.cancelTask(taskId));
        return { cancelled, again, view: await tasks.getTask(taskId), waited };
    },
    task_unknown: async () => ({
        get: await errorOf(tasks.getTask('never')),
        result: await errorOf(tasks.getTaskResult('never', CallToolResultSchema)),
        cancel: await errorOf(tasks.cancelTask('never')),
    }),
    task_list: () => errorOf(tasks.listTasks()),
    tasks_of_one_s_own: async () => {
        if (way !== 'http') return null;
        const ann = await named('ann');
        const bob = await named('bob');
        try {
            const made = [];
            for (let number = 0; number < 3; number++) {
                const params = { name: 'render', task: {} };
                const { task } = await ann.request({ method: 'tools/call', params }, CreateTaskResultSchema);
                made.push(task.taskId);
            }
            const strangers = {
                get: await errorOf(bob.experimental.tasks.getTask(made[0])),
                cancel: await errorOf(bob.experimental.tasks.cancelTask(made[0])),
            };
            const capability = ann.getServerCapabilities().tasks.list;
            if (capability === undefined) return { made: made.sort(), ...strangers };
            const listed = await ann.experimental.tasks.listTasks();
            return {
                capability,
                made: made.sort(),
                ann: listed.tasks.map(({ taskId }) => taskId).sort(),
                bob: await bob.experimental.tasks.listTasks(),
                cursor: await errorOf(ann.experimental.tasks.listTasks('nonsense')),
                ...strangers,
            };
        } finally {
            await ann.close();
            await bob.close();
        }
    },
    wrong_way: async () => {
        const ask = (params) => client.request({ method: 'tools/call', params }, CallToolResultSchema);
        return {
            'as task': await errorOf(ask({ name: 'greet', arguments: { name: 'Ada' }, task: {} })),
            plain: await errorOf(ask({ name: 'idle' })),
        };
    },
    tools_change: async () => {
        news.length = 0;
        await call('hire');
        for (const end = Date.now() + PATIENCE_MS; news.length === 0 && Date.now() < end; ) await sleep(20);
        await call('dismiss');
        return news[0];
    },
};

// -- running ------------------------------------------------------------------------------------------------

function patiently(promise) {
    const tooLate = sleep(PATIENCE_MS, null, { ref: false }).then(() => {
        throw new Error('it took too long');
    });
    return Promise.race([promise, tooLate]);
}

async function outcome(run) {
    try {
        return { returned: await patiently(run()) };
    } catch (error) {
        return { traceback: error.stack };
    }
}

const transport =
    way === 'http'
        ? new StreamableHTTPClientTransport(new URL(target[0]))
        : new StdioClientTransport({ command: target[0], args: target.slice(1), env: process.env });
await client.connect(transport);
const outcomes = {};
for (const [name, run] of Object.entries(scenarios)) outcomes[name] = await outcome(run);
if (way === 'http') await transport.terminateSession();
await client.close();
const { version } = JSON.parse(readFileSync(join(sdkFolder, 'package.json'), 'utf8'));
console.log(JSON.stringify({ sdk: version, outcomes }));
