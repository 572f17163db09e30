import { request } from "undici";
import { statSync } from "node:fs";
import type { Finding } from "../../lib/finding.ts";
import { codeOf, KbsyncError, messageOf } from "../../lib/failure.ts";
import { openAgent } from "../../lib/proxy.ts";
import { KEY_HEADER, ROUTES } from "../../wire/routes.ts";
import { readServiceAddress } from "../state/state-folder.ts";
import { openWithoutTls } from "../state/exposure.ts";
import { type Check, type Checked, type DoctorGround, openFile } from "./check.ts";

/** Timeout of the probe, a search for a missing document, which a service answers at once. */
const ANSWER_MS = 10_000;
/** Id without a document: a search for it reads nothing, and shows whether the key is valid. */
const NO_DOCUMENT = "0".repeat(24);

/** Checks that the configured service answers. An embedded one need not run. */
export const serviceCheck: Check = {
  name: "service",
  run: async (ground) => {
    const { config } = ground;
    if (!("apiUrl" in config.service)) {
      const found = await ground.reached();
      const alone = found === undefined ? undefined : readServiceAddress(ground.state);
      const findings = [...exposed(config.service), ...notAppliedFindings(alone?.notApplied ?? [])];
      return { seen: found === undefined ? "embedded, not running" : `embedded, ${found.dbUrl}`, findings };
    }
    const { apiUrl } = config.service;
    try {
      await ask(apiUrl, undefined, ground.signal);
      return { seen: apiUrl, findings: [] };
    } catch (error) {
      ground.signal.throwIfAborted();
      const finding: Finding = {
        check: "service-reachable",
        level: "failure",
        subject: apiUrl,
        message: `the service at ${apiUrl} does not answer: ${reasonOf(error)}`,
        remedy:
          "Check service.apiUrl, and whether name resolution, proxy and firewall let this machine reach it.",
      };
      return { seen: apiUrl, findings: [finding] };
    }
  },
};

/** Reports changes of the configuration that a running process has not applied. */
export function notAppliedFindings(notApplied: readonly string[]): Finding[] {
  return notApplied.map((change) => ({
    check: "not-applied",
    level: "warning",
    subject: "",
    message: `not applied: ${change}`,
    remedy: "Restart kbsync, or correct the file: the former configuration stays in force until then.",
  }));
}

/** Reports an embedded service that other machines reach without TLS. */
function exposed(service: DoctorGround["config"]["service"]): Finding[] {
  const message = openWithoutTls(service);
  if (message === undefined) return [];
  const remedy =
    "Put a proxy with TLS before it, name its https address in service.publicUrl, and let service.host be 127.0.0.1 where the proxy is on this machine.";
  return [{ check: "service-without-tls", level: "warning", subject: "service.host", message, remedy }];
}

/** Checks that a key exists, that only its owner can read it, and that the service accepts it. */
export const keyCheck: Check = {
  name: "key",
  run: async (ground) => {
    const { config, state } = ground;
    const file = "apiUrl" in config.service ? config.service.pauthkeyFile : state.keyFile;
    const reached = await reach(ground);
    if (reached instanceof KbsyncError) return keyFailure(reached);
    const findings = file === undefined ? [] : openFile("key-file-mode", file, "key file");
    if (reached === undefined) {
      const isThere =
        findings.length > 0 || (file !== undefined && statSync(file, { throwIfNoEntry: false }));
      return { seen: isThere ? "not tried: no service answers" : "none yet", findings };
    }
    const status = await ask(reached.apiUrl, reached.pauthkey, ground.signal).catch(() => undefined);
    ground.signal.throwIfAborted();
    if (status === undefined) return { seen: "not tried: the service does not answer", findings };
    if (status !== 401 && status !== 403) return { seen: "accepted by the service", findings };
    const finding: Finding = {
      check: "key-refused",
      level: "failure",
      subject: reached.apiUrl,
      message: `the service refuses the key (HTTP ${status})`,
      remedy:
        "Get a key that is valid there and put it alone into service.pauthkeyFile or KBSYNC_PAUTHKEY; an embedded service makes a new one at its next start.",
    };
    return { seen: "refused", findings: [...findings, finding] };
  },
};

function keyFailure(error: KbsyncError): Checked {
  const finding: Finding = {
    check: "key-missing",
    level: "failure",
    subject: error.subject ?? "",
    message: error.message,
    remedy: error.hint ?? "Put the key alone into service.pauthkeyFile or KBSYNC_PAUTHKEY.",
  };
  return { seen: "none", findings: [finding] };
}

/** Finds the service and its key. Returns a missing key as a value, because a check reports it; a silent service counts as none. */
async function reach({ reached }: DoctorGround) {
  try {
    return await reached();
  } catch (error) {
    if (codeOf(error) === "control_silent") return undefined;
    if (error instanceof KbsyncError) return error;
    throw error;
  }
}

/** Returns the status of the answer. */
async function ask(apiUrl: string, key: string | undefined, signal: AbortSignal): Promise<number> {
  const { statusCode, body } = await request(`${apiUrl}${ROUTES.query}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...(key !== undefined && { [KEY_HEADER]: key }) },
    body: JSON.stringify({ query: "kbsync doctor", doc_id: NO_DOCUMENT, top_k: 1 }),
    signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]),
    dispatcher: openAgent(),
  });
  await body.dump();
  return statusCode;
}

function reasonOf(error: unknown): string {
  if (error instanceof Error && error.name === "TimeoutError")
    return `no answer within ${ANSWER_MS / 1000} s`;
  return messageOf(error) || (codeOf(error) ?? "unknown");
}
