/** A file attached to a mail. */
export type MailFile = readonly [name: string, type: string, bytes: string | Uint8Array];

let boundaries = 0;
/** Builds a mail with these attachments. */
export function mailOf(
  attachments: readonly MailFile[],
  headers = "Subject: Tides\r\nFrom: a@example.org\r\n",
): string {
  // Nested mails need different boundaries.
  const boundary = `b${(boundaries += 1)}`;
  const parts = attachments.map(
    ([name, type, bytes]) =>
      `--${boundary}\r\nContent-Type: ${type}\r\nContent-Disposition: attachment; filename="${name}"\r\n` +
      `Content-Transfer-Encoding: base64\r\n\r\n${Buffer.from(bytes).toString("base64").replaceAll(/.{76}/g, "$&\r\n")}\r\n`,
  );
  const head = `${headers}MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary="${boundary}"\r\n\r\n`;
  return `${head}--${boundary}\r\nContent-Type: text/plain\r\n\r\nSee the files.\r\n${parts.join("")}--${boundary}--\r\n`;
}
