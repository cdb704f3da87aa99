// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/.ci/peers/cost"
)

// nameCount is how many decorated names are compared.
const nameCount = 100_000

// compareNames holds the names that unwindd gives to public symbols against llvm-symbolizer's. The
// names are of a program that has types and functions of every kind at random, and of public
// PDB files, as the symbols of one program.
func (r *rig) compareNames() error {
	count := nameCount
	if r.isQuick {
		count = 5000
	}
	names := map[string]bool{}
	for seed := uint64(1); len(names) < count && seed < 40; seed++ {
		if err := r.namesOfTypes(seed, names); err != nil {
			return err
		}
	}
	if err := r.publicNames(names); err != nil {
		return err
	}
	list := make([]string, 0, len(names))
	for name := range names {
		list = append(list, name)
	}
	slices.Sort(list)
	image, addresses, err := r.symbolsOf(list)
	if err != nil {
		return err
	}
	return r.compareAnswers(fmt.Sprintf("%d names", len(list)), image, image, addresses, 0)
}

// namesOfTypes adds the decorated names that clang gives to functions and variables with random types.
func (r *rig) namesOfTypes(seed uint64, names map[string]bool) error {
	dir := filepath.Join(r.dir, "names")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	source := filepath.Join(dir, "types.cc")
	if err := os.WriteFile(source, types(seed), 0o600); err != nil {
		return err
	}
	for _, target := range []string{"x86_64", "i686"} {
		object := filepath.Join(dir, target+".obj")
		err := cost.Run(dir, "clang++-22", "--target="+target+"-pc-windows-msvc", "-std=c++20", "-w", "-c", "-o", object, source)
		if err != nil {
			return err
		}
		out, err := exec.Command("llvm-nm-22", "-j", object).Output()
		if err != nil {
			return err
		}
		for name := range strings.Lines(string(out)) {
			if name = strings.TrimSpace(name); strings.HasPrefix(name, "?") {
				names[name] = true
			}
		}
	}
	return nil
}

// types writes a program whose types, functions and variables are random.
func types(seed uint64) []byte {
	random := rand.New(rand.NewPCG(seed, 52))
	var b bytes.Buffer
	b.WriteString(preamble)
	list := []string{"int", "char", "bool", "wchar_t", "long long", "unsigned", "float", "double", "char16_t", "char32_t", "signed char", "unsigned short", "long double", "decltype(nullptr)", "unsigned long", "char8_t",
		"plain", "ns::outer", "ns::outer::inner", "ns::outer::number", "(anonymous)", "colour", "shade"}
	list[20] = "hidden"
	pick := func() string { return list[random.IntN(len(list))] }
	forms := []func() string{
		func() string { return pick() + " *" },
		func() string { return "const " + pick() + " *" },
		func() string { return "volatile " + pick() + " *const" },
		func() string { return "one<" + pick() + ">" },
		func() string { return "one<const " + pick() + " *>" },
		func() string { return fmt.Sprintf("two<%s, %d>", pick(), random.IntN(5000)-1000) },
		func() string { return fmt.Sprintf("pack<%s, %s, %s>", pick(), pick(), pick()) },
		func() string { return "pack<>" },
		func() string { return fmt.Sprintf("nested<one, %s>", pick()) },
		func() string {
			return fmt.Sprintf("valued<%s>", pickOf(random, "true", "colour::green", "&global", "&called", "&plain::field", "&plain::method", "'x'", "nullptr", "-7LL", "~0ull"))
		},
		func() string { return fmt.Sprintf("id<%s (*)(%s, %s)>", pick(), pick(), pick()) },
		func() string { return fmt.Sprintf("id<%s (plain::*)(%s) const>", pick(), pick()) },
		func() string { return fmt.Sprintf("id<%s (ns::outer::*)(%s, ...)>", pick(), pick()) },
		func() string { return fmt.Sprintf("id<%s plain::*>", pick()) },
		func() string { return fmt.Sprintf("id<%s (*)[%d]>", pick(), random.IntN(30)+1) },
		func() string { return fmt.Sprintf("id<%s (*)(%s) noexcept>", pick(), pick()) },
		func() string { return fmt.Sprintf("ns::outer::box<%s>", pick()) },
	}
	for i := range 160 {
		fmt.Fprintf(&b, "using t%d = %s;\n", i, forms[random.IntN(len(forms))]())
		list = append(list, fmt.Sprintf("t%d", i))
	}
	for i := range 160 {
		t, u := fmt.Sprintf("t%d", i), pick()
		fmt.Fprintf(&b, "namespace n%d { %s *f(%s *, const %s &, %s &&, %s (&)[3]) { return nullptr; } %s *v; static %s *const *s; void *use() { return &s; } }\n", i, u, pick(), t, pick(), pick(), t, t)
		fmt.Fprintf(&b, "template struct members<struct tag%d, %s *, %s *>;\n", i, t, u)
		fmt.Fprintf(&b, "template %s *generic<%s *, %d>(%s *, int);\n", t, t, i, t)
		fmt.Fprintf(&b, "auto lambda%d = [](%s *p, auto q) { static int kept; return &kept; }; void call%d() { lambda%d(nullptr, (%s *)nullptr); }\n", i, t, i, i, u)
	}
	return b.Bytes()
}

func pickOf(random *rand.Rand, list ...string) string { return list[random.IntN(len(list))] }

// preamble has the types that the random ones are made of.
const preamble = `
typedef decltype(sizeof 0) size_t;
void operator delete(void *, size_t) noexcept;
void *operator new(size_t);
enum class colour : short { red, green };
enum shade { dark, light };
struct plain { int field; virtual int method(int) const; virtual ~plain(); };
int plain::method(int) const { return 0; }
plain::~plain() {}
struct also { virtual void other(); virtual ~also(); int x; };
struct both : plain, virtual also { int method(int) const override; void other() override; ~both(); };
int both::method(int) const { return 1; }
void both::other() {}
both::~both() {}
int global;
int called(int x) { return x; }
namespace { struct hidden { int x; }; }
namespace ns { class outer { public: struct inner { int y; }; enum number { n1 }; union either { int i; float f; }; template <class T> class box { T *t; }; template <class T> void each(T *, either); static const int constant; }; }
template <class T> void ns::outer::each(T *, either) {}
const int ns::outer::constant = 3;
template <class T> struct one { T *t; };
template <class T, int N> struct two { T *t; };
template <class... T> struct pack {};
template <template <class> class C, class T> struct nested { C<T> *c; };
template <auto V> struct valued {};
template <class T> using id = T;
template <class T, class A, class B> struct members {
  members(); members(const members &); members(members &&); explicit members(A, B); ~members() noexcept;
  A operator()(B) const; members &operator=(const members &) &; B &operator[](A); members operator+(A) const &; members operator-() &&;
  bool operator==(const members &) const; bool operator!=(A); bool operator<(B) const volatile; bool operator&&(A); members &operator+=(B); members &operator<<=(A);
  members operator++(int); members &operator--(); A *operator->(); A &operator*() const; B operator,(A); B operator->*(A); operator A() const; explicit operator B();
  static A make(B, ...); virtual A run(B &) volatile; virtual void pure(A const *) = 0; A __stdcall standard(B); A __fastcall fast(B); A __vectorcall vector(B) const;
  template <class U> B convert(U, A) { static U kept; return (B)(size_t)&kept; }
  static A shared; static const volatile B fixed; void *operator new(size_t, A); void operator delete[](void *); struct part { part(); B b; }; enum kind { k1 }; kind which(part, kind *);
  friend B befriended(members &, A *) { static thread_local A own; return (B)(size_t)&own; }
};
template <class T, class A, class B> members<T, A, B>::members() {}
template <class T, class A, class B> members<T, A, B>::members(const members &) {}
template <class T, class A, class B> members<T, A, B>::members(members &&) {}
template <class T, class A, class B> members<T, A, B>::members(A, B) {}
template <class T, class A, class B> members<T, A, B>::~members() noexcept {}
template <class T, class A, class B> A members<T, A, B>::operator()(B) const { return {}; }
template <class T, class A, class B> members<T, A, B> &members<T, A, B>::operator=(const members &) & { return *this; }
template <class T, class A, class B> B &members<T, A, B>::operator[](A) { static B b; return b; }
template <class T, class A, class B> bool members<T, A, B>::operator==(const members &) const { return true; }
template <class T, class A, class B> bool members<T, A, B>::operator!=(A) { return true; }
template <class T, class A, class B> bool members<T, A, B>::operator<(B) const volatile { return true; }
template <class T, class A, class B> bool members<T, A, B>::operator&&(A) { return true; }
template <class T, class A, class B> members<T, A, B> &members<T, A, B>::operator+=(B) { return *this; }
template <class T, class A, class B> members<T, A, B> &members<T, A, B>::operator<<=(A) { return *this; }
template <class T, class A, class B> members<T, A, B> &members<T, A, B>::operator--() { return *this; }
template <class T, class A, class B> A *members<T, A, B>::operator->() { return nullptr; }
template <class T, class A, class B> A &members<T, A, B>::operator*() const { static A a; return a; }
template <class T, class A, class B> B members<T, A, B>::operator,(A) { return {}; }
template <class T, class A, class B> B members<T, A, B>::operator->*(A) { return {}; }
template <class T, class A, class B> members<T, A, B>::operator A() const { return {}; }
template <class T, class A, class B> members<T, A, B>::operator B() { return {}; }
template <class T, class A, class B> A members<T, A, B>::make(B, ...) { return {}; }
template <class T, class A, class B> A members<T, A, B>::run(B &) volatile { return {}; }
template <class T, class A, class B> A __stdcall members<T, A, B>::standard(B) { return {}; }
template <class T, class A, class B> A __fastcall members<T, A, B>::fast(B) { return {}; }
template <class T, class A, class B> A __vectorcall members<T, A, B>::vector(B) const { return {}; }
template <class T, class A, class B> A members<T, A, B>::shared;
template <class T, class A, class B> void *members<T, A, B>::operator new(size_t, A) { return nullptr; }
template <class T, class A, class B> void members<T, A, B>::operator delete[](void *) {}
template <class T, class A, class B> members<T, A, B>::part::part() {}
template <class T, class A, class B> typename members<T, A, B>::kind members<T, A, B>::which(part, kind *) { return k1; }
template <class T, int N> T generic(T t, int) { static int kept[N + 1]; return t; }
`

// publicSymbol is a public symbol in what llvm-pdbutil writes.
var publicSymbol = regexp.MustCompile("S_PUB32 .*`(\\?.*)`$")

// publicNames adds the decorated names of the public PDB files.
func (r *rig) publicNames(names map[string]bool) error {
	for _, path := range r.publicFiles(".pdb") {
		out, err := exec.Command("llvm-pdbutil-22", "dump", "-publics", path).Output()
		if err != nil {
			continue // it reads no older files
		}
		for line := range strings.Lines(string(out)) {
			if m := publicSymbol.FindStringSubmatch(strings.TrimSpace(line)); m != nil && len(names) < 3*nameCount {
				names[m[1]] = true
			}
		}
	}
	return nil
}

// publicFiles returns the public files with an extension; none where there is no folder of them.
func (r *rig) publicFiles(extension string) (list []string) {
	if r.public == "" {
		return nil
	}
	_ = filepath.WalkDir(r.public, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.EqualFold(filepath.Ext(path), extension) {
			list = append(list, path)
		}
		return nil
	})
	return list
}

// symbolsOf makes a program with a public symbol of each name, and returns their addresses.
func (r *rig) symbolsOf(names []string) (image string, addresses []uint64, err error) {
	dir := filepath.Join(r.dir, "names")
	f, err := os.Create(filepath.Join(dir, "names.s"))
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	fmt.Fprintln(w, ".text\n.globl start\nstart:\n.zero 16, 0x90")
	for _, name := range names {
		name = strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(name)
		fmt.Fprintf(w, ".def \"%s\"; .scl 2; .type 32; .endef\n.globl \"%s\"\n\"%s\":\n.zero 16, 0x90\n", name, name, name)
	}
	if err := w.Flush(); err != nil {
		return "", nil, err
	}
	if err := cost.Run(dir, "clang-22", "--target=x86_64-pc-windows-msvc", "-c", "names.s", "-o", "names.obj"); err != nil {
		return "", nil, err
	}
	image = filepath.Join(dir, "names.exe")
	if err := cost.Run(dir, "lld-link-22", "/debug", "/entry:start", "/nodefaultlib", "/subsystem:console", "/out:names.exe", "names.obj"); err != nil {
		return "", nil, err
	}
	_, code, err := codeOf(image)
	if err != nil || len(code) == 0 {
		return "", nil, fmt.Errorf("%s: no code: %w", image, err)
	}
	for i := range names {
		addresses = append(addresses, code[0].start+16*uint64(i+1))
	}
	return image, addresses, nil
}
