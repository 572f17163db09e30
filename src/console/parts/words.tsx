import type { JSX } from "preact";
import { pieces, sentence } from "../view/sentence.ts";

/** A reason of the daemon or the service as a sentence, with commands as code. */
export function Words({ of }: { readonly of: string }): JSX.Element {
  return (
    <>{pieces(sentence(of)).map(({ text, isCode }, at) => (isCode ? <code key={at}>{text}</code> : text))}</>
  );
}
