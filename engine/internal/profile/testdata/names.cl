// Kernels with names as SYCL and C++ mangle them.
//
//   ocloc compile -file names.cl -device tgllp --format zebin -options -g

// typeinfo name for main::{lambda(auto:1)#1} and #2
kernel void _ZTSZ4mainEUlT_E_(global int *p) { p[get_global_id(0)] += 1; }
kernel void _ZTSZ4mainEUlT_E0_(global int *p) { p[get_global_id(0)] += 2; }

// void ns::gemm<float, 16>(float*, float const*)
kernel void _ZN2ns4gemmIfLi16EEEvPT_PKS1_(global float *p, global const float *q) { p[get_global_id(0)] *= q[0]; }

// void one::scale<int>(int*) and void two::scale<int>(int*)
kernel void _ZN3one5scaleIiEEvPT_(global int *p) { p[get_global_id(0)] *= 3; }
kernel void _ZN3two5scaleIiEEvPT_(global int *p) { p[get_global_id(0)] *= 5; }

// As a name of C++'s ABI it is that of a type.
kernel void f(global int *p) { p[get_global_id(0)] *= 7; }
