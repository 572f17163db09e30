import { z } from "zod";

/** Schema of an object that its readers do not change. */
export const record = <S extends z.ZodRawShape>(shape: S) => z.object(shape).readonly();
/** Schema of a list that its readers do not change. */
export const list = <T extends z.ZodType>(item: T) => z.array(item).readonly();
