// SPDX-License-Identifier: Apache-2.0

package signature

// The tables of parts that are left out of names. A change of an entry here, in machinery.go, or
// in the tables of package funcname changes signatures: it needs a new Version.

// abbreviations are the names that demanglers have for templates of std.
var abbreviations = map[string]string{
	"string": "basic_string", "istream": "basic_istream", "ostream": "basic_ostream", "iostream": "basic_iostream",
}

// suffixes are words behind a dot at the end of names, which compilers and linkers add:
// for parts and copies of functions, and for functions of one file made global.
var suffixes = setOf(
	"constprop", "isra", "part", "cold", "hot", "warm", "unlikely", "startup", "exit", "llvm", "lto_priv", "localalias", "clone",
	"specialized", "resolver", "ifunc", "default", "simdclone", "outlined", "content", "extracted", "str", "abi0", "abiinternal",
	"avx", "avx2", "avx512f", "sse2", "sse4", "sse4_1", "sse4_2", "fma", "arch_x86_64_v2", "arch_x86_64_v3", "arch_x86_64_v4",
)

// newSuffixes are the suffixes that the second version of signatures adds: of parts that LLVM
// puts into sections of their own and of functions that BOLT moves, of clones, of the parts of
// coroutines, and of Microsoft's compiler for handlers.
var newSuffixes = setOf(
	"__part", "eh", "bolt", "org", "__hot_start", "__hot_end", "memprof", "resume", "destroy", "cleanup", "actor",
	"filt", "catch", "fin", "dtor",
)

// interceptors begin the names of functions of sanitizers in the place of the C library's.
var interceptors = []string{"___interceptor_", "__interceptor_", "__interceptor_trampoline_"}

// processors are words for processors in the names of functions of the C library.
var processors = setOf(
	"sse2", "ssse3", "sse3", "sse4", "sse41", "sse42", "avx", "avx2", "avx512", "avx512vl", "evex", "evex512", "erms", "fma", "fma4", "unaligned",
	"generic", "sve", "mops", "neon", "simd", "mte", "a64fx", "thunderx", "thunderx2", "falkor", "emag", "kunpeng", "oryon1", "power7", "power8", "power9", "power10", "z13", "z196",
)

// reservedSuffixes end reserved names of the C library: in that order.
var reservedSuffixes = []string{"_nocancel", "_internal", "_impl", "_time64", "_chk"}

// aliases are other names of a function, or functions that another one does the work of.
var aliases = map[string]string{
	"cfree": "free", "memmove": "memcpy", "mempcpy": "memcpy", "gsignal": "raise",
	"open64": "open", "pread64": "pread", "pwrite64": "pwrite", "lseek64": "lseek", "fopen64": "fopen",
}

// goWrappers are functions that Go's compiler makes, with a number each.
var goWrappers = setOf("gowrap", "deferwrap", "gowrap.")

// goSuffixes are words at the end of Go's names for how a function is called.
var goSuffixes = setOf("abi0", "abiinternal")

func setOf(list ...string) map[string]bool {
	m := make(map[string]bool, len(list))
	for _, e := range list {
		m[e] = true
	}
	return m
}
