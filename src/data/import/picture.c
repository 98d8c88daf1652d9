/* Decodes pictures with libpng and libjpeg-turbo, and scales them. */
#include "geotrain/data_picture.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <jpeglib.h>

#include <jerror.h>
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

/* libpng reports an error by a jump.  Its simplified interface would apply gAMA, and takes 16 bits
   as linear. */
typedef struct {
  png_structp in;
  png_infop info;
  jmp_buf failed;
  char reason[128];
  FILE *file;
  uint8_t *pixels;
} png_file;

static void png_failed(png_file *p, const char *reason) {
  snprintf(p->reason, sizeof p->reason, "%s", reason);
  longjmp(p->failed, 1);
}

static void on_png_error(png_structp in, const char *message) {
  png_failed(png_get_error_ptr(in), message);
}

static void on_png_warning(png_structp in, const char *message) {
  (void)in;
  (void)message;
}

/* Reads the header; the caller has set p->failed. */
static void png_begin(png_file *p, gt_picture_size *size) {
  p->in = png_create_read_struct(PNG_LIBPNG_VER_STRING, p, on_png_error, on_png_warning);
  p->info = png_create_info_struct(p->in);
  if (!p->info) png_failed(p, "no memory is left");
  png_init_io(p->in, p->file);
  png_read_info(p->in, p->info);
  *size =
      (gt_picture_size){png_get_image_height(p->in, p->info), png_get_image_width(p->in, p->info),
                        !(png_get_color_type(p->in, p->info) & PNG_COLOR_MASK_COLOR)};
}

/* Decodes the rows as RGB of 8 bits, without alpha. */
static void png_rows(png_file *p, const gt_picture_size *size) {
  png_set_expand(p->in);
  png_set_scale_16(p->in);
  png_set_gray_to_rgb(p->in);
  png_set_strip_alpha(p->in);
  const int passes = png_set_interlace_handling(p->in);
  png_read_update_info(p->in, p->info);
  for (int pass = 0; pass < passes; pass++)
    for (size_t y = 0; y < size->h; y++) png_read_row(p->in, p->pixels + y * size->w * 3, NULL);
}

/* Makes RGB gray, with the weights of JPEG and Pillow; gray stays as it is. */
static void to_gray(uint8_t *pixels, size_t n) {
  for (size_t i = 0; i < n; i++) {
    const uint8_t *rgb = pixels + 3 * i;
    pixels[i] = (uint8_t)((299 * rgb[0] + 587 * rgb[1] + 114 * rgb[2] + 500) / 1000);
  }
}

static gt_status png_end(png_file *p, gt_status status) {
  png_destroy_read_struct(&p->in, &p->info, NULL);
  fclose(p->file);
  return status;
}

/* c 0: reads the header only. */
static gt_status read_png(const char *path, size_t c, gt_picture_size *size, uint8_t **out) {
  png_file p = {.file = fopen(path, "rbe")};
  if (!p.file) return broken(path, strerror(errno));
  if (setjmp(p.failed)) {
    gt_free(p.pixels);
    return png_end(&p, broken(path, p.reason));
  }
  png_begin(&p, size);
  const gt_status status = check_size(path, size->h, size->w);
  if (status == GT_OK && c > 0) {
    p.pixels = gt_alloc(size->h * size->w, 3);
    png_rows(&p, size);
    if (c == 1) to_gray(p.pixels, size->h * size->w);
    *out = p.pixels;
  }
  return png_end(&p, status);
}

/* ---- JPEG ------------------------------------------------------------------------------------ */

/* libjpeg reports an error by a jump.  A warning of missing or damaged pixels counts; others, as of
   bytes between markers, do not. */
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
  const int code = common->err->msg_code;
  if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE))
    on_error(common);
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
static gt_status read_jpeg(const char *path, size_t c, gt_picture_size *size, uint8_t **out) {
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
  return (png ? read_png : read_jpeg)(path, 0, size, NULL);
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
  const gt_status status = (png ? read_png : read_jpeg)(path, c, &size, &pixels);
  if (pixels && size.h == h && size.w == w)
    memcpy(out, pixels, h * w * c);
  else if (pixels)
    scale_picture(&size, pixels, h, w, c, out);
  gt_free(pixels);
  return status;
}
