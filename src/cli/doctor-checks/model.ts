import type { Finding } from "../../lib/finding.ts";
import type { Check } from "./check.ts";

/** Checks that an embedding model is available to `moderate` and `high_accuracy`. */
export const modelCheck: Check = {
  name: "model",
  run: async ({ config }) => {
    if ("apiUrl" in config.service) return { seen: "the hosted service has its own", findings: [] };
    const { baseUrl, model } = config.kb.embedding;
    if (baseUrl !== undefined) return { seen: `${model} at ${baseUrl} (not asked)`, findings: [] };
    const { readConfiguredModel } = await import("../../kb/embed/model-files.ts");
    const found = await readConfiguredModel(model);
    if ("folder" in found) return { seen: `${found.name} (${found.dtype})`, findings: [] };
    const needed = config.sources.filter(({ collection }) => collection !== "fastest");
    const finding: Finding = {
      check: "model-missing",
      level: needed.length > 0 ? "failure" : "warning",
      subject: found.location,
      message: `there is no embedding model (${found.location}: ${found.problem}), so that moderate and high_accuracy search by words alone`,
      remedy:
        "Install kbsync from its package, which holds the model, get one with `kbsync models NAME`, or name a service in kb.embedding.",
    };
    return { seen: "none", findings: [finding] };
  },
};
