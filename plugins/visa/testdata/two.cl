// Two kernels that call a function with a stack frame. two.ze_info is what the
// compiler (intel-opencl-icd 22.43, IGC 1.0.12504) says of them:
//
//   ocloc compile -file two.cl -device tgllp --format zebin
//   llvm-objcopy --dump-section=.ze_info=two.ze_info two_Gen12LPlp.bin
__attribute__((noinline)) int rec(int n, global int *p) {
  if (n <= 0)
    return p[0];
  p[n] = n;
  return rec(n - 1, p) * 3 + n;
}

kernel void alpha(global int *p, int n) {
  size_t i = get_global_id(0);
  p[i] = rec(n, p + i) + 1;
}

kernel void beta(global int *p, int n) {
  local int l[256];
  size_t i = get_local_id(0);
  l[i] = p[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  p[i] = l[i ^ 1] + rec(n, p);
}
