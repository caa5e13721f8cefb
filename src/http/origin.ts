/** Which Host and Origin are answered: without this, any website could reach a local Errand through the browser. */
import { isIP } from "node:net";
import type { MiddlewareHandler } from "hono";
import { Problem } from "../base/errors.ts";
import type { HttpEnv } from "./env.ts";

/**
 * Refuses a Host that is neither a loopback name, nor an IP literal, nor allowed: a name under an attacker's control
 * may point here (DNS rebinding), an address may not. And refuses an Origin of other hosts than this one, the loopback
 * names and the allowed: browsers send it with what a page asks for, other clients do not.
 */
export function requireKnownOrigin(allowedHosts: readonly string[]): MiddlewareHandler<HttpEnv> {
  const allowed = new Set(allowedHosts.map((host) => host.toLowerCase()));
  // An entry with a port allows that port only.
  const isAllowed = ({ hostname, host }: URL) => allowed.has(hostname) || allowed.has(host);
  return async function checkOrigin(c, next) {
    const { host: hostHeader, origin: originHeader } = c.env.incoming.headers;
    const host = parse(`http://${hostHeader ?? ""}`);
    if (host === null || !(isLoopback(host) || isAddress(host) || isAllowed(host))) {
      throw new Problem(
        "forbidden_host",
        `The Host ${JSON.stringify(hostHeader ?? "")} is not allowed here. Use an address or localhost, or add the name to ERRAND_ALLOWED_HOSTS.`,
      );
    }
    if (originHeader !== undefined) {
      const origin = /^https?:/i.test(originHeader) ? parse(originHeader) : null;
      const isKnown =
        origin !== null && (origin.hostname === host.hostname || isLoopback(origin) || isAllowed(origin));
      if (!isKnown) {
        throw new Problem(
          "forbidden_origin",
          `Pages of ${JSON.stringify(originHeader)} may not call Errand. Add their host to ERRAND_ALLOWED_HOSTS if they should.`,
        );
      }
    }
    await next();
  };
}

function parse(url: string): URL | null {
  const parsed = URL.parse(url);
  // Nothing but a scheme, a host and a port: what else there is would be a way round the comparison.
  const isPlain = parsed !== null && parsed.pathname === "/" && parsed.search === "" && parsed.hash === "";
  return isPlain && !url.includes("@") ? parsed : null;
}

/** RFC 6761 §6.3: localhost and the names under it are this machine. */
function isLoopback({ hostname }: URL): boolean {
  const name = hostname.replace(/\.$/, "");
  return (
    name === "localhost" || name.endsWith(".localhost") || /^127(\.\d+){3}$/.test(name) || name === "[::1]"
  );
}

function isAddress({ hostname }: URL): boolean {
  return isIP(hostname.replace(/^\[|\]$/g, "")) !== 0;
}
