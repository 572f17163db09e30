import { embedderContract } from "../kb/embed/embedder-contract.ts";
import { hashedEmbedder } from "./hashed-embedder.ts";

embedderContract("hashed (of the tests)", async () => hashedEmbedder());
