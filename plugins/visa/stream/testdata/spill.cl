__attribute__((noinline)) float16 deep(int n, float16 a, float16 b, __global float16 *p) {
  float16 v0 = p[n], v1 = p[n + 1], v2 = p[n + 2], v3 = p[n + 3], v4 = p[n + 4], v5 = p[n + 5], v6 = p[n + 6];
  float16 w0 = p[n * 2], w1 = p[n * 2 + 1], w2 = p[n * 2 + 2], w3 = p[n * 2 + 3], w4 = p[n * 2 + 4];
  if (n <= 0) return a + b;
  float16 r = deep(n - 1, v0 * a, v1 + b, p);
  p[n + 20] = v0 + w0; p[n + 21] = v1 * w1; p[n + 22] = v2 - w2; p[n + 23] = v3 + w3; p[n + 24] = v4 / w4;
  float16 r2 = deep(n - 2, r, v6, p);
  return r + r2 * v5 + v0 * v1 + v2 + v3 + v4 + w0 + w1 + w2 + w3 + w4 + a * b;
}
__attribute__((noinline)) int small(int n) { return n < 2 ? 1 : n * small(n - 1); }
__kernel void spill(__global float16 *out, int n) {
  int id = get_global_id(0);
  out[id] = deep(n + id, out[id], out[id + 1], out) + (float)small(n);
}
