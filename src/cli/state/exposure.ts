import type { ServiceConfig } from "../../config/schema.ts";
import { isExposed, isLoopback } from "../../lib/loopback.ts";

/**
 * A warning if other machines can reach the embedded service and no setting names a proxy with TLS; otherwise undefined. The
 * service itself has no TLS, because certificates are the proxy's task. Pure.
 */
export function openWithoutTls(service: ServiceConfig): string | undefined {
  if ("apiUrl" in service || !isExposed(service)) return undefined;
  const { host, port, publicUrl = "" } = service;
  if (publicUrl.startsWith("https:")) return undefined;
  const where = isLoopback(host) ? `at ${publicUrl}` : `on ${host}, port ${port}`;
  return `the service is reachable from other machines ${where}, without TLS: anyone on the network path can read keys and documents. Put a proxy with TLS in front of it and name its https address in service.publicUrl`;
}

/**
 * A warning if processes share a database but uploaded files are in the state folder of the one that received them; otherwise
 * undefined. Pure.
 */
export function filesOfOneProcess(service: ServiceConfig): string | undefined {
  if ("apiUrl" in service || service.database === undefined || service.files !== undefined) return undefined;
  return "uploaded files are in this state folder, where other processes of the database cannot read them: name a place for all in service.files";
}
