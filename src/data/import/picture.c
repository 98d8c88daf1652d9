/* Decodes pictures with libpng and libjpeg-turbo, and scales them. */
#include "geotrain/data_picture.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <jpeglib.h>
#include <png.h>

bool gt_picture_is(const char *name) {
  const char *dot = strrchr(name, '.');
  return dot && (strcasecmp(dot, ".png") == 0 || strcasecmp(dot, ".jpg") == 0 ||
                 strcasecmp(dot, ".jpeg") == 0);
}

static gt_status broken(const char *path, const char *reason) {
  return GT_FAIL(GT_ERR_DATA, "%s: cannot be read as a picture: %s", path, reason);
}

static gt_status check_size(const char *path, size_t h, size_t w) {
  if (h > 0 && w > 0 && w <= GT_PICTURE_PIXELS / h) return GT_OK;
  return GT_FAIL(GT_ERR_DATA, "%s: has %zu x %zu pixels; expected at most %zu in all", path, h, w,
                 GT_PICTURE_PIXELS);
}

/* ---- PNG ------------------------------------------------------------------------------------- */

static gt_status png_begin(png_image *image, const char *path) {
  *image = (png_image){.version = PNG_IMAGE_VERSION};
  if (!png_image_begin_read_from_file(image, path)) return broken(path, image->message);
  return check_size(path, image->height, image->width);
}

static gt_status png_look(gt_picture_size *size, const char *path) {
  png_image image;
  const gt_status status = png_begin(&image, path);
  *size = (gt_picture_size){image.height, image.width, !(image.format & PNG_FORMAT_FLAG_COLOR)};
  png_image_free(&image);
  return status;
}

/* Removes the alpha channel. */
static void drop_alpha(uint8_t *pixels, size_t n, size_t c) {
  for (size_t i = 0; i < n; i++) memmove(pixels + i * c, pixels + i * (c + 1), c);
}

static gt_status png_decode(const char *path, size_t c, gt_picture_size *size, uint8_t **out) {
  png_image image;
  gt_status status = png_begin(&image, path);
  *out = NULL;
  if (status == GT_OK) {
    const bool alpha = image.format & PNG_FORMAT_FLAG_ALPHA;
    image.format = c == 1  ? alpha ? PNG_FORMAT_GA : PNG_FORMAT_GRAY
                   : alpha ? PNG_FORMAT_RGBA
                           : PNG_FORMAT_RGB;
    *size = (gt_picture_size){image.height, image.width, c == 1};
    *out = gt_alloc(size->h * size->w, c + alpha);
    if (!png_image_finish_read(&image, NULL, *out, 0, NULL)) {
      status = broken(path, image.message);
      gt_free(*out);
      *out = NULL;
    } else if (alpha)
      drop_alpha(*out, size->h * size->w, c);
  }
  png_image_free(&image);
  return status;
}

/* ---- JPEG ------------------------------------------------------------------------------------ */

/* libjpeg reports an error by a jump; a warning, as for a file that ends early, counts. */
typedef struct {
  struct jpeg_decompress_struct in;
  struct jpeg_error_mgr errors;
  jmp_buf failed;
  char reason[JMSG_LENGTH_MAX];
  FILE *file;
  uint8_t *pixels;
} jpeg;

static void on_error(j_common_ptr common) {
  jpeg *j = common->client_data;
  common->err->format_message(common, j->reason);
  longjmp(j->failed, 1);
}

static void on_message(j_common_ptr common, int level) {
  if (level < 0) on_error(common);
}

/* Reads the header; the caller has set j->failed. */
static void jpeg_begin(jpeg *j) {
  j->in.err = jpeg_std_error(&j->errors);
  j->in.client_data = j;
  j->errors.error_exit = on_error;
  j->errors.emit_message = on_message;
  jpeg_create_decompress(&j->in);
  jpeg_stdio_src(&j->in, j->file);
  jpeg_read_header(&j->in, TRUE);
}

static void jpeg_rows(jpeg *j, size_t c) {
  jpeg_start_decompress(&j->in);
  while (j->in.output_scanline < j->in.output_height) {
    JSAMPROW row = j->pixels + (size_t)j->in.output_scanline * j->in.output_width * c;
    jpeg_read_scanlines(&j->in, &row, 1);
  }
  jpeg_finish_decompress(&j->in);
}

static gt_status jpeg_end(jpeg *j, gt_status status) {
  jpeg_destroy_decompress(&j->in);
  if (j->file) fclose(j->file);
  return status;
}

/* c 0: reads the header only. */
static gt_status jpeg_read(const char *path, size_t c, gt_picture_size *size, uint8_t **out) {
  jpeg j = {.file = fopen(path, "rbe")};
  if (!j.file) return broken(path, strerror(errno));
  if (setjmp(j.failed)) {
    gt_free(j.pixels);
    return jpeg_end(&j, broken(path, j.reason));
  }
  jpeg_begin(&j);
  *size = (gt_picture_size){j.in.image_height, j.in.image_width, j.in.num_components == 1};
  gt_status status = check_size(path, size->h, size->w);
  if (status == GT_OK && j.in.num_components == 4)
    status = broken(path, "it has four colours (CMYK); expected gray or RGB");
  if (status == GT_OK && c > 0) {
    j.in.out_color_space = c == 1 ? JCS_GRAYSCALE : JCS_RGB;
    j.pixels = gt_alloc(size->h * size->w, c);
    jpeg_rows(&j, c);
    *out = j.pixels;
  }
  return jpeg_end(&j, status);
}

/* ---- both ------------------------------------------------------------------------------------ */

/* By the contents: files are often named wrongly. */
static gt_status is_png(bool *png, const char *path) {
  uint8_t first[8] = {0};
  FILE *file = fopen(path, "rbe");
  if (!file) return broken(path, strerror(errno));
  const size_t n = fread(first, 1, sizeof first, file);
  fclose(file);
  *png = png_sig_cmp(first, 0, sizeof first) == 0;
  if (*png || (first[0] == 0xff && first[1] == 0xd8)) return GT_OK;
  return broken(path, n == 0 ? "it is empty" : "it is neither PNG nor JPEG");
}

gt_status gt_picture_look(gt_picture_size *size, const char *path) {
  bool png;
  GT_TRY(is_png(&png, path));
  return png ? png_look(size, path) : jpeg_read(path, 0, size, NULL);
}

/* ---- scaling --------------------------------------------------------------------------------- */

/* Scales one axis: n values of c channels, `step` apart, to m values; in (n), out (m): of one row
   or column.  Output i is the mean of the inputs around its place, weighted by a triangle that is
   as wide as an output, or as two inputs if that is wider. */
typedef struct {
  size_t n, m;
  double scale;  /* inputs per output */
  double offset; /* input at which the first output begins */
} axis;

static void scale_row(const axis *a, size_t c, const uint8_t *in, size_t in_step, uint8_t *out,
                      size_t out_step) {
  const double width = fmax(1, a->scale);
  for (size_t i = 0; i < a->m; i++) {
    const double centre = a->offset + ((double)i + 0.5) * a->scale;
    const size_t from = (size_t)fmax(0, floor(centre - width + 0.5));
    const size_t to = (size_t)fmin((double)a->n, floor(centre + width + 0.5));
    for (size_t k = 0; k < c; k++) {
      double sum = 0, weights = 0;
      for (size_t x = from; x < to; x++) {
        const double w = 1 - fabs((double)x + 0.5 - centre) / width;
        if (w <= 0) continue;
        sum += w * in[x * in_step + k];
        weights += w;
      }
      out[i * out_step + k] = (uint8_t)fmin(255, floor(sum / weights + 0.5));
    }
  }
}

static void scale_picture(const gt_picture_size *from, const uint8_t *in, size_t h, size_t w,
                          size_t c, uint8_t *out) {
  const double scale = fmin((double)from->h / (double)h, (double)from->w / (double)w);
  const axis x = {from->w, w, scale, ((double)from->w - scale * (double)w) / 2},
             y = {from->h, h, scale, ((double)from->h - scale * (double)h) / 2};
  uint8_t *rows = gt_alloc(from->h * w, c);
  for (size_t i = 0; i < from->h; i++)
    scale_row(&x, c, in + i * from->w * c, c, rows + i * w * c, c);
  for (size_t i = 0; i < w; i++) scale_row(&y, c, rows + i * c, w * c, out + i * c, w * c);
  gt_free(rows);
}

gt_status gt_picture_read(const char *path, size_t h, size_t w, size_t c, uint8_t *out) {
  gt_picture_size size = {0};
  uint8_t *pixels = NULL;
  bool png;
  GT_TRY(is_png(&png, path));
  const gt_status status =
      png ? png_decode(path, c, &size, &pixels) : jpeg_read(path, c, &size, &pixels);
  if (pixels && size.h == h && size.w == w)
    memcpy(out, pixels, h * w * c);
  else if (pixels)
    scale_picture(&size, pixels, h, w, c, out);
  gt_free(pixels);
  return status;
}
