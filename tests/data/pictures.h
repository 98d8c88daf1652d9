/* pictures: writes PNG and JPEG files for tests and fuzzers. */
#ifndef GEOTRAIN_TESTS_DATA_PICTURES_H
#define GEOTRAIN_TESTS_DATA_PICTURES_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>
#include <png.h>

#include "tests.h"

/* pixels (h,w,c): c 1 gray, 2 gray and alpha, 3 RGB, 4 RGB and alpha. */
static inline void write_png(const char *path, size_t h, size_t w, size_t c,
                             const uint8_t *pixels) {
  static const png_uint_32 formats[] = {0, PNG_FORMAT_GRAY, PNG_FORMAT_GA, PNG_FORMAT_RGB,
                                        PNG_FORMAT_RGBA};
  png_image image = {.version = PNG_IMAGE_VERSION,
                     .width = (png_uint_32)w,
                     .height = (png_uint_32)h,
                     .format = formats[c]};
  assert_true(png_image_write_to_file(&image, path, 0, pixels, 0, NULL));
}

/* Gray values of 16 bits, with a gAMA chunk that says that they are linear. */
static inline void write_png16(const char *path, size_t h, size_t w, const uint16_t *pixels) {
  png_image image = {.version = PNG_IMAGE_VERSION,
                     .width = (png_uint_32)w,
                     .height = (png_uint_32)h,
                     .format = PNG_FORMAT_LINEAR_Y};
  assert_true(png_image_write_to_file(&image, path, 0, pixels, 0, NULL));
}

/* c 1 gray, 3 RGB, 4 CMYK. */
static inline void write_jpeg(const char *path, size_t h, size_t w, size_t c, uint8_t *pixels) {
  struct jpeg_compress_struct out;
  struct jpeg_error_mgr errors;
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  out.err = jpeg_std_error(&errors);
  jpeg_create_compress(&out);
  jpeg_stdio_dest(&out, file);
  out.image_width = (JDIMENSION)w;
  out.image_height = (JDIMENSION)h;
  out.input_components = (int)c;
  out.in_color_space = c == 1 ? JCS_GRAYSCALE : c == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&out);
  jpeg_set_quality(&out, 95, TRUE);
  jpeg_start_compress(&out, TRUE);
  while (out.next_scanline < h) {
    JSAMPROW row = pixels + out.next_scanline * w * c;
    jpeg_write_scanlines(&out, &row, 1);
  }
  jpeg_finish_compress(&out);
  jpeg_destroy_compress(&out);
  assert_int_equal(fclose(file), 0);
}

#endif
