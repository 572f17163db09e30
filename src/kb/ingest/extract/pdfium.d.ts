/** The part of PDFium's C interface (public/fpdfview.h) that is used. Pointers and handles are numbers; 0 is none. */
declare module "@hyzyla/pdfium" {
  export interface Pdfium {
    _FPDF_InitLibraryWithConfig(config: { readonly version: number }): void;
    _FPDF_GetLastError(): number;
    /** The bytes must stay where they are as long as the document is used. */
    _FPDF_LoadMemDocument(bytes: number, length: number, password: number): number;
    /** Pages are counted from 0. */
    _FPDF_LoadPage(document: number, page: number): number;
    _FPDF_ClosePage(page: number): void;
    /** In points. */
    _FPDF_GetPageWidth(page: number): number;
    _FPDF_GetPageHeight(page: number): number;
    _FPDFBitmap_CreateEx(
      width: number,
      height: number,
      format: number,
      pixels: number,
      stride: number,
    ): number;
    _FPDFBitmap_Destroy(bitmap: number): void;
    /** The colour is 0xAARRGGBB. */
    _FPDFBitmap_FillRect(
      bitmap: number,
      left: number,
      top: number,
      width: number,
      height: number,
      colour: number,
    ): void;
    _FPDF_RenderPageBitmap(
      bitmap: number,
      page: number,
      left: number,
      top: number,
      width: number,
      height: number,
      rotate: number,
      flags: number,
    ): void;
    readonly wasmExports: {
      malloc(this: void, bytes: number): number;
      free(this: void, pointer: number): void;
    };
    /** The memory of the instance; another array after each allocation. */
    readonly HEAPU8: Uint8Array<ArrayBuffer>;
  }

  /** Starts an instance of PDFium in WebAssembly. */
  export function PDFiumModule(options: object): Promise<Pdfium>;
}
