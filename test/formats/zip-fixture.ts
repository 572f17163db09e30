import { crc32, deflateRawSync } from "node:zlib";

/** One part of an archive; `says` is a false unpacked size. */
export interface ZipPart {
  readonly bytes: string | Buffer;
  readonly stored?: boolean;
  readonly encrypted?: boolean;
  readonly says?: number;
}

/** A zip archive of these parts, in their order (APPNOTE 6.3, without extensions). */
export function buildZip(parts: Readonly<Record<string, string | Buffer | ZipPart>>): Buffer {
  const locals: Buffer[] = [];
  const central: Buffer[] = [];
  let offset = 0;
  for (const [name, given] of Object.entries(parts)) {
    const part = typeof given === "string" || Buffer.isBuffer(given) ? { bytes: given } : given;
    const bytes = Buffer.from(part.bytes);
    const packed = part.stored === true ? bytes : deflateRawSync(bytes);
    const facts = Buffer.alloc(26);
    facts.writeUInt16LE(20, 0); // version needed
    facts.writeUInt16LE((part.encrypted === true ? 1 : 0) | 0x800, 2); // names are UTF-8
    facts.writeUInt16LE(part.stored === true ? 0 : 8, 4);
    facts.writeUInt32LE(0x5a210000, 6); // a date
    facts.writeUInt32LE(crc32(bytes), 10);
    facts.writeUInt32LE(packed.length, 14);
    facts.writeUInt32LE(part.says ?? bytes.length, 18);
    facts.writeUInt16LE(Buffer.byteLength(name), 22);
    const local = Buffer.concat([Buffer.from("PK\x03\x04", "latin1"), facts, Buffer.from(name), packed]);
    const more = Buffer.alloc(14);
    more.writeUInt32LE(offset, 10);
    central.push(Buffer.concat([Buffer.from("PK\x01\x02\x14\0", "latin1"), facts, more, Buffer.from(name)]));
    locals.push(local);
    offset += local.length;
  }
  const directory = Buffer.concat(central);
  const end = Buffer.alloc(22);
  end.write("PK\x05\x06", "latin1");
  end.writeUInt16LE(central.length, 8);
  end.writeUInt16LE(central.length, 10);
  end.writeUInt32LE(directory.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...locals, directory, end]);
}
