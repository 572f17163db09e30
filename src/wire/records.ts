import { z } from "zod";

export const record = <S extends z.ZodRawShape>(shape: S) => z.object(shape).readonly();
export const list = <T extends z.ZodType>(item: T) => z.array(item).readonly();
