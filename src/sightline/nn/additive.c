/* The scores of additive attention and their gradients, each in one pass over the keys.

   Built and called by additive_compiled.py, which says what for. REAL is float or double.

   keys (B, M, A) hold exp(2 key) and asked (R, A) exp(2 query), so that with
   s = 1 / (1 + exp(2 key) exp(2 query)):  tanh(key + query) = 1 - 2s,  its slope is 4 (s - s²).
   The rows that ask of example b are rows[starts[b]] to rows[starts[b + 1] - 1].

   s is computed anew wherever it is wanted: a division costs less than a number from memory. Keys
   are fetched two places ahead, which the processor's own prefetching, ending at each page, does
   too late: 15 % of a pass. */

#include <stdint.h>

typedef REAL real;

static inline const real *at(const real *keys, int64_t place, int64_t size)
{
    const real *key = keys + place * size;
    for (int64_t a = 0; a < size; a += 64 / sizeof(real)) /* a line of the cache at a time */
        __builtin_prefetch(key + 2 * size + a);
    return key;
}

/* scores (R, M): Σ_a v s */
void score(const real *keys, const real *asked, const int64_t *starts, const int64_t *rows,
           const real *v, real *scores, int64_t examples, int64_t places, int64_t size)
{
#pragma omp parallel for collapse(2) schedule(dynamic, 32)
    for (int64_t b = 0; b < examples; b++)
        for (int64_t m = 0; m < places; m++) {
            const real *key = at(keys, b * places + m, size);
            for (int64_t i = starts[b]; i < starts[b + 1]; i++) {
                const real *query = asked + rows[i] * size;
                real sum = 0;
#pragma omp simd reduction(+ : sum)
                for (int64_t a = 0; a < size; a++)
                    sum += v[a] / (1 + key[a] * query[a]);
                scores[rows[i] * places + m] = sum;
            }
        }
}

/* d_queries (R, A), zeros before: Σ_m d_e (s - s²) */
void queries_gradient(const real *keys, const real *asked, const int64_t *starts,
                      const int64_t *rows, const real *d_scores, real *d_queries,
                      int64_t examples, int64_t places, int64_t size)
{
#pragma omp parallel for schedule(dynamic)
    for (int64_t b = 0; b < examples; b++)
        for (int64_t m = 0; m < places; m++) {
            const real *key = at(keys, b * places + m, size);
            for (int64_t i = starts[b]; i < starts[b + 1]; i++) {
                const real *query = asked + rows[i] * size;
                const real given = d_scores[rows[i] * places + m];
                real *sum = d_queries + rows[i] * size;
#pragma omp simd
                for (int64_t a = 0; a < size; a++) {
                    const real s = 1 / (1 + key[a] * query[a]);
                    sum[a] += given * (s - s * s);
                }
            }
        }
}

/* d_keys (B, M, A): slope Σ_r d_e (s - s²); seen (B, A), zeros before: Σ_r,m d_e s */
void keys_gradient(const real *keys, const real *asked, const int64_t *starts, const int64_t *rows,
                   const real *d_scores, const real *slope, real *d_keys, real *seen,
                   int64_t examples, int64_t places, int64_t size)
{
#pragma omp parallel for schedule(dynamic)
    for (int64_t b = 0; b < examples; b++)
        for (int64_t m = 0; m < places; m++) {
            const real *key = at(keys, b * places + m, size);
            real *d_key = d_keys + (b * places + m) * size, *sum = seen + b * size;
            for (int64_t a = 0; a < size; a++)
                d_key[a] = 0;
            for (int64_t i = starts[b]; i < starts[b + 1]; i++) {
                const real *query = asked + rows[i] * size;
                const real given = d_scores[rows[i] * places + m];
#pragma omp simd
                for (int64_t a = 0; a < size; a++) {
                    const real s = 1 / (1 + key[a] * query[a]), part = given * s;
                    sum[a] += part;
                    d_key[a] += part - part * s;
                }
            }
            for (int64_t a = 0; a < size; a++)
                d_key[a] *= slope[a];
        }
}
