/** `errand serve`: starts the service, tells a first-time user what to paste, and stops it on a signal. */
import { isatty } from "node:tty";
import { setFlagsFromString } from "node:v8";
import { type RunningApp, startApp } from "./app.ts";
import { readConfig } from "./config.ts";

/**
 * How many threads the system's resolver, the syncs of the log and the ciphers share. libuv lets look-ups hold half of
 * them (https://docs.libuv.org/en/v1.x/threadpool.html): with its four, two names whose server is dead would hold up
 * every other name for as long as the resolver waits.
 */
const THREADS = "128";

/**
 * V8 lets old objects grow to several times what lives before it looks for dead ones: after 100,000 jobs the process
 * holds 250 MB, or 170 when it looks as soon as a third was added.
 */
const HEAP_GROWTH = "--heap-growing-percent=30";

/** `flags` are the settings given on the command line, by their names in config.ts. */
export async function serve(flags: Readonly<Record<string, string | undefined>>): Promise<void> {
  // Read when the first work is given to the threads, which nothing before this does.
  process.env["UV_THREADPOOL_SIZE"] ??= THREADS;
  const starting = startApp(readConfig(process.env, flags));
  // From now on, so that a signal during the start stops the service in order, too.
  stopOnSignals(starting);
  const app = await starting;
  setFlagsFromString(HEAP_GROWTH);
  if (app.seededKey !== null) greet(app, app.seededKey);
}

function stopOnSignals(starting: Promise<RunningApp>): void {
  let stopping = false;
  const stop = async (signal: string): Promise<void> => {
    if (stopping) process.exit(1);
    stopping = true;
    const app = await starting;
    app.log.info({ signal }, "stopping; a second signal stops at once");
    await app.stop().catch((error: unknown) => {
      app.log.error({ err: error }, "the stop failed");
      process.exit(1);
    });
    process.exit(0);
  };
  // A start that fails is told by who awaits it.
  for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => void stop(signal).catch(() => {}));
  // Node undoes what nohup did about SIGHUP, so it is done here: who has no terminal cannot lose one. A terminal
  // that is closed tells so twice, by its shell and by the system, and neither is a wish to stop at once.
  const onTerminal = [0, 1, 2].some((fd) => isatty(fd));
  process.on("SIGHUP", () => {
    if (onTerminal && !stopping) void stop("SIGHUP").catch(() => {});
  });
}

/** Shown once, on stderr, so that stdout stays a log. */
function greet({ port }: RunningApp, key: string): void {
  process.stderr.write(`
  Your test key, shown this once and kept in the data folder:

    ${key}

  Try it:

    curl http://localhost:${port}/v1/jobs \\
      -H 'Authorization: Bearer ${key}' \\
      -H 'Content-Type: application/json' \\
      -d '{"url":"https://example.com/","payload":{"hello":"world"}}'

`);
}
