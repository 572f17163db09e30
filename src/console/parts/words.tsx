import type { JSX } from "preact";
import { pieces, sentence } from "../view/sentence.ts";

/** A reason of the daemon or the service as a sentence, with commands as code. */
export function Words({ of }: { readonly of: string }): JSX.Element {
  return <Clause of={sentence(of)} />;
}

/** A part of a sentence, with what stands between backticks as code. */
export function Clause({ of }: { readonly of: string }): JSX.Element {
  return <>{pieces(of).map(({ text, isCode }, at) => (isCode ? <code key={at}>{text}</code> : text))}</>;
}
