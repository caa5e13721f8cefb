/** What an operation is: described once here, offered by every door (REST, CLI, MCP). */
import type * as v from "valibot";
import type { Principal } from "../accounts/account.ts";
import type { Scope } from "../accounts/scopes.ts";
import type { Clock } from "../base/clock.ts";
import type { InvalidField, ProblemCode } from "../base/errors.ts";
import type { Feed } from "../engine/events.ts";
import type { Once, OnceResult, Store, StoredAnswer } from "../store/store.ts";

/** What operations work with. */
export interface Services {
  readonly store: Store;
  readonly clock: Clock;
  readonly feed: Feed;
  /** Why Errand may not call this URL, as far as the URL alone shows it; null when it may. */
  readonly refusalOfUrl: (url: Readonly<URL>) => string | null;
  readonly limits: { readonly requestsPerSecond: number; readonly maxBodyBytes: number };
}

/** One call: who makes it, and how its answer is to be repeated. */
export interface Context extends Services {
  readonly principal: Principal;
  readonly idempotency: Idempotency | null;
  /** Aborted when the caller is gone or the service stops. */
  readonly signal: () => AbortSignal;
}

/** `Idempotency-Key` of one call. `answer` is what the door would say to this output. */
export interface Idempotency {
  readonly key: string;
  readonly fingerprint: string;
  answer(output: unknown): StoredAnswer;
}

/** In place of an output: the answer that this call got the first time. */
export class Replay {
  readonly answer: StoredAnswer;
  constructor(answer: StoredAnswer) {
    this.answer = answer;
  }
}

/** One of many outputs. `id` says where it stands: given back as `last_event_id`, a later stream goes on after it. */
export interface StreamItem {
  readonly id: string;
  readonly type: string;
  readonly data: unknown;
}

/** In place of an output: outputs that go on coming until the caller or the service is gone. */
export abstract class Stream {
  /** Where the stream stands: the id to go on from when nothing more was read. */
  abstract readonly id: string;
  /** True when the service stops or the key was revoked; nothing more comes. */
  abstract readonly ended: boolean;
  /** What has come since the last read, at most `limit` items; null when the reader was too slow and items were lost. */
  abstract read(limit: number): readonly StreamItem[] | null;
  /** Calls `wake` when there is something to read, or the stream has ended; the answer stops that. */
  abstract listen(wake: () => void): () => void;
}

/** Runs a command of the store once per idempotency key; `view` turns its value into the operation's output. */
export async function onceOnly<T, O>(
  context: Context,
  view: (value: T) => O,
  command: (once: Once<T> | null) => Promise<OnceResult<T>>,
): Promise<O | Replay> {
  const { idempotency } = context;
  const once =
    idempotency === null
      ? null
      : {
          key: idempotency.key,
          fingerprint: idempotency.fingerprint,
          answer: (value: T) => idempotency.answer(view(value)),
        };
  const result = await command(once);
  return "replay" in result ? new Replay(result.replay) : view(result.value);
}

export type InputSchema = v.StrictObjectSchema<v.ObjectEntries, undefined>;

/** What is answered is only read from then on, so views may hand out lists that nobody may change. */
type Unchanging<T> = T extends object ? { readonly [K in keyof T]: Unchanging<T[K]> } : T;

export interface Operation<I extends InputSchema = InputSchema, O extends v.GenericSchema = v.GenericSchema> {
  /** `jobs.create`: the group and what is done in it. */
  readonly name: string;
  /** One line, for the API reference, the CLI's help and an agent's list of tools. */
  readonly summary: string;
  /** More, where one line does not say it all. */
  readonly description?: string;
  readonly scope: Scope;
  /** read: changes nothing. write: changes something. destructive: takes away what cannot be brought back by another call. */
  readonly effect: "read" | "write" | "destructive";
  /** Path parameters, query and body as one flat object. */
  readonly input: I;
  /** Null: there is nothing to say but that it was done. */
  readonly output: O | null;
  /** Faults that concern several fields, found in input that may be wrong in other ways too. */
  readonly check?: (input: Readonly<Record<string, unknown>>) => readonly InvalidField[];
  readonly http: {
    readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
    /** `/v1/jobs/{id}`: names in braces are taken from the input; GET and DELETE have the rest in the query. */
    readonly path: string;
    readonly status: number | ((output: v.InferOutput<O>) => number);
    readonly statuses?: readonly number[];
    readonly location?: (output: v.InferOutput<O>) => string;
    /** An empty body counts as `{}`. */
    readonly bodyOptional?: boolean;
  };
  readonly cli: {
    /** `jobs create`. */
    readonly command: string;
    /** Input fields that are given without their name, in order. */
    readonly positional?: readonly string[];
    readonly examples: readonly string[];
  } | null;
  /** The tool's name; null where an agent has no use for it. */
  readonly mcp: string | null;
  /** Its outputs are a stream that does not end by itself; `run` answers a {@link Stream} of them. */
  readonly streams?: true;
  /** Further tools over the same operation, each for a use of its own that an agent should find by name. */
  readonly moreTools?: readonly {
    readonly name: string;
    readonly description: string;
    /** Input that the tool gives where the agent does not. */
    readonly defaults: Readonly<Record<string, unknown>>;
  }[];
  /** It creates something, and so takes an Idempotency-Key. */
  readonly creates?: true;
  /** Errors besides those that every operation can answer. */
  readonly problems?: readonly ProblemCode[];
  /** An input that works, for the API reference. */
  readonly example?: Readonly<Record<string, unknown>>;
  readonly run: (
    context: Context,
    input: v.InferOutput<I>,
  ) => Promise<Unchanging<v.InferOutput<O>> | Replay | Stream>;
}

/** Keeps the types of one operation together; the list itself does not need them. */
export function operation<const I extends InputSchema, const O extends v.GenericSchema>(
  definition: Operation<I, O>,
): Operation {
  return definition as unknown as Operation;
}

/** Names in the path: `/v1/jobs/{id}` → `["id"]`. */
export function pathNames({ http }: Operation): string[] {
  return [...http.path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? "");
}
