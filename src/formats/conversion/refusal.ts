/** Why a document cannot be read, in words that follow "the file". Retrying does not help. */
export class ConversionRefusal extends Error {
  override readonly name = "ConversionRefusal";
}
