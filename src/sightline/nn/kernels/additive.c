/* The scores of additive attention and their gradients, each in one pass over the keys.

   Built and called by additive.py, which says what for. REAL is float or double.

   keys (B, M, A) hold exp(2 key) and queries (R, A) exp(2 query), so that with
   s = 1 / (1 + exp(2 key) exp(2 query)):  tanh(key + query) = 1 - 2s,  its slope is 4 (s - s²).
   The rows that attend to example b are rows[starts[b]] to rows[starts[b + 1] - 1]. A is even.

   s is computed anew wherever it is wanted: a division costs less than a number from memory. */

#include <stdint.h>

typedef REAL real;

/* Two of the s, for a and a + A / 2, by one division: where K rows share the keys, these loops wait
   for divisions, and take two thirds of the time so. */
typedef struct {
    real low, high;
} pair;

static inline real bounded(real x)
{
    const real most = 1e18; /* where 1 / x is nothing, and x² can still be had; NaN stays NaN */
    return x > most ? most : x;
}

static inline pair inverses(const real *key, const real *query, int64_t a, int64_t half)
{
    const real x = bounded(1 + key[a] * query[a]);
    const real y = bounded(1 + key[a + half] * query[a + half]);
    const real inverse = 1 / (x * y);
    return (pair){inverse * y, inverse * x};
}

/* The key of a place. Keys are fetched into the second-level cache four places ahead: the
   processor's own prefetching ends at each page, and a pass takes half as long again with it alone. */
static inline const real *at(const real *keys, int64_t place, int64_t size)
{
    const real *key = keys + place * size;
    for (int64_t a = 0; a < size; a += 64 / sizeof(real)) /* a line of the cache at a time */
        __builtin_prefetch(key + 4 * size + a, 0, 1);
    return key;
}

/* scores (R, M): Σ_a v s */
void score(const real *keys, const real *queries, const int64_t *starts, const int64_t *rows,
           const real *v, real *scores, int64_t examples, int64_t places, int64_t size)
{
    const int64_t half = size / 2;
#pragma omp parallel for collapse(2) schedule(dynamic, 32)
    for (int64_t b = 0; b < examples; b++)
        for (int64_t m = 0; m < places; m++) {
            const real *key = at(keys, b * places + m, size);
            for (int64_t i = starts[b]; i < starts[b + 1]; i++) {
                const real *query = queries + rows[i] * size;
                real sum = 0;
#pragma omp simd reduction(+ : sum)
                for (int64_t a = 0; a < half; a++) {
                    const pair s = inverses(key, query, a, half);
                    sum += v[a] * s.low + v[a + half] * s.high;
                }
                scores[rows[i] * places + m] = sum;
            }
        }
}

/* d_queries (R, A), zeros before: Σ_m d_e (s - s²) */
void queries_gradient(const real *keys, const real *queries, const int64_t *starts,
                      const int64_t *rows, const real *d_scores, real *d_queries,
                      int64_t examples, int64_t places, int64_t size)
{
    const int64_t half = size / 2;
#pragma omp parallel for schedule(dynamic)
    for (int64_t b = 0; b < examples; b++)
        for (int64_t m = 0; m < places; m++) {
            const real *key = at(keys, b * places + m, size);
            for (int64_t i = starts[b]; i < starts[b + 1]; i++) {
                const real *query = queries + rows[i] * size;
                const real given = d_scores[rows[i] * places + m];
                real *sum = d_queries + rows[i] * size;
#pragma omp simd
                for (int64_t a = 0; a < half; a++) {
                    const pair s = inverses(key, query, a, half);
                    sum[a] += given * (s.low - s.low * s.low);
                    sum[a + half] += given * (s.high - s.high * s.high);
                }
            }
        }
}

/* d_keys (B, M, A): slope Σ_r d_e (s - s²); seen (B, A), zeros before: Σ_r,m d_e s */
void keys_gradient(const real *keys, const real *queries, const int64_t *starts, const int64_t *rows,
                   const real *d_scores, const real *slope, real *d_keys, real *seen,
                   int64_t examples, int64_t places, int64_t size)
{
    const int64_t half = size / 2;
#pragma omp parallel for schedule(dynamic)
    for (int64_t b = 0; b < examples; b++)
        for (int64_t m = 0; m < places; m++) {
            const real *key = at(keys, b * places + m, size);
            real *d_key = d_keys + (b * places + m) * size, *sum = seen + b * size;
            for (int64_t a = 0; a < size; a++)
                d_key[a] = 0;
            for (int64_t i = starts[b]; i < starts[b + 1]; i++) {
                const real *query = queries + rows[i] * size;
                const real given = d_scores[rows[i] * places + m];
#pragma omp simd
                for (int64_t a = 0; a < half; a++) {
                    const pair s = inverses(key, query, a, half);
                    const real low = given * s.low, high = given * s.high;
                    sum[a] += low;
                    sum[a + half] += high;
                    d_key[a] += low - low * s.low;
                    d_key[a + half] += high - high * s.high;
                }
            }
            for (int64_t a = 0; a < size; a++)
                d_key[a] *= slope[a];
        }
}
