import { lazyModule } from "../../lib/lazy-module.ts";

/** The client library of OpenAI's API. Its 230 modules delay a start, and most services have no language model. */
export const openAi = lazyModule((load) => load("openai") as typeof import("openai"));

/** The library's reader of streamed answers. */
export const openAiStreaming = lazyModule(
  (load) => load("openai/streaming") as typeof import("openai/streaming"),
);
