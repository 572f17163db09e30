import { integer, type Arbitrary } from "fast-check";

/** Number of the first surrogate, and how many there are: they stand for no character of their own. */
const SURROGATE = 0xd800;
const SURROGATES = 0x800;

/** Any character of Unicode, as the `unit` of a string. The "binary" of fast-check takes a second of each process to list them. */
export const anyCharacter: Arbitrary<string> = integer({ min: 0, max: 0x10ffff - SURROGATES }).map((number) =>
  String.fromCodePoint(number < SURROGATE ? number : number + SURROGATES),
);
