/** Where JSON-RPC messages hold values whose bytes are kept as they came: in the arguments of tools. */
import { isRawPlace } from "../operations/raw-places.ts";

/** In a message, or in one of a list of them (protocol version 2025-03-26). */
const ARGUMENTS = /^(?:\[\]\/)?params\/arguments\/(.*)$/;

export function isRawMessagePlace(path: string): boolean {
  const place = ARGUMENTS.exec(path)?.[1];
  return place !== undefined && isRawPlace(place);
}
