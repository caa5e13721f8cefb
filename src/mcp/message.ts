/** JSON-RPC messages as text: their payloads are kept as they came, and what is none is told what is wrong with it. */
import { JsonFault, parseJson } from "../base/json.ts";
import { isRawPlace } from "../operations/raw-places.ts";

/** In a message, or in one of a list of them (protocol version 2025-03-26). */
const ARGUMENTS = /^(?:\[\]\/)?params\/arguments\/(.*)$/;

function isRawMessagePlace(path: string): boolean {
  const place = ARGUMENTS.exec(path)?.[1];
  return place !== undefined && isRawPlace(place);
}

/** JSON-RPC 2.0 §5.1. */
const PARSE_ERROR = -32_700;

export interface UnreadableMessage {
  readonly jsonrpc: "2.0";
  readonly error: { readonly code: number; readonly message: string };
}

/** The message, or what to answer to a text that is not JSON. */
export function readMessage(text: string): { message: unknown } | { fault: UnreadableMessage } {
  try {
    return { message: parseJson(text, isRawMessagePlace) };
  } catch (error) {
    if (!(error instanceof JsonFault)) throw error;
    const message = `The message cannot be read: ${error.message}.`;
    return { fault: { jsonrpc: "2.0", error: { code: PARSE_ERROR, message } } };
  }
}
