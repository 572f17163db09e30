import type { ServiceConfig } from "../../config/schema.ts";
import { isExposed, isLoopback } from "../../lib/loopback.ts";

/**
 * Words where the embedded service lets others reach it and nothing says that TLS stands before it; else undefined. The
 * service has none itself: certificates are a proxy's. Pure.
 */
export function openWithoutTls(service: ServiceConfig): string | undefined {
  if (!("embedded" in service) || !isExposed(service)) return undefined;
  const { host, port, publicUrl = "" } = service;
  if (publicUrl.startsWith("https:")) return undefined;
  const where = isLoopback(host) ? `at ${publicUrl}` : `on ${host}, port ${port}`;
  return `the service is reachable from other machines ${where}, without TLS: anyone on the network path can read keys and documents. Put a proxy with TLS in front of it and name its https address in service.publicUrl`;
}

/**
 * Words where processes share a database, but uploaded files lie in the state folder of the one that received them; else undefined. Pure.
 */
export function filesOfOneProcess(service: ServiceConfig): string | undefined {
  if (!("embedded" in service) || service.database === undefined || service.files !== undefined)
    return undefined;
  return "uploaded files are in this state folder, where other processes of the database cannot read them: name a place for all in service.files";
}
