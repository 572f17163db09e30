/** Why a document cannot be read, in words that follow "the file": it does not change by trying again. */
export class ConversionRefusal extends Error {
  override readonly name = "ConversionRefusal";
}
