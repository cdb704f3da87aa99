// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/object"
)

// This file finds the code of kernels that profilers record by name only.

// kernelCode is the place of the code of a kernel.
type kernelCode struct {
	object *object.Object
	// section is the name of the kernel's section in a relocatable object; "" in another
	// object.
	section string
	// address is an ELF virtual address, relative to the section where there is one.
	address, size uint64
}

// kernelObjects finds kernels in objects.
type kernelObjects struct {
	linkage map[string]kernelPlaces
	// readable are the same places by other spellings of their names; nil until one is needed.
	readable map[string]kernelPlaces
	failed   error
}

// kernelPlaces are the places of one name.
type kernelPlaces []kernelCode

// kernelEntry is the symbol in all kernels of Intel of the code after the loading of their
// arguments. Until October of 2023 its type was that of functions.
const kernelEntry = "_entry"

// newKernelObjects reads the kernels of objects: symbols of functions, and the sections that
// the compiler of Intel makes for kernels (.text.NAME). Unreadable ones are left out, which
// find mentions for a kernel that it misses.
func newKernelObjects(list []*object.Object) *kernelObjects {
	k := &kernelObjects{linkage: map[string]kernelPlaces{}}
	var failed []error
	for _, o := range list {
		failed = append(failed, k.read(o))
	}
	k.failed = errors.Join(failed...)
	return k
}

func (k *kernelObjects) read(o *object.Object) error {
	sections := o.Sections()
	isCode := func(s *object.Section) bool { return s.Occupies() && s.Flags&elf.SHF_EXECINSTR != 0 }
	hasSection := map[string]bool{}
	for _, s := range sections {
		// The offsets of profilers count from there, whatever symbols there are.
		if name, ok := strings.CutPrefix(s.Name, ".text."); ok && name != "" && isCode(s) {
			hasSection[name] = true
			k.add(name, kernelIn(o, s, 0, s.Size))
		}
	}
	return o.EachSymbol(func(s *object.Symbol) {
		name := symbol.StripVersion(s.Name)
		switch {
		case s.Type != elf.STT_FUNC || name == "" || name == kernelEntry || !s.Defined() || hasSection[name]:
		case len(sections) == 0:
			k.add(name, kernelCode{object: o, address: s.Address, size: s.Size})
		case uint64(s.Section) < uint64(len(sections)) && isCode(sections[s.Section]):
			section, start := sections[s.Section], s.Address
			if !o.IsRelocatable() {
				start -= section.Address
			}
			if start < section.Size {
				k.add(name, kernelIn(o, section, start, s.Size))
			}
		}
	})
}

// kernelIn returns a kernel in a section. A size of 0 means up to the section's end.
func kernelIn(o *object.Object, section *object.Section, start, size uint64) kernelCode {
	if size == 0 || size > section.Size-start {
		size = section.Size - start
	}
	if o.IsRelocatable() {
		return kernelCode{object: o, section: section.Name, address: start, size: size}
	}
	return kernelCode{object: o, address: section.Address + start, size: size}
}

func (k *kernelObjects) add(name string, place kernelCode) {
	k.linkage[name] = k.linkage[name].with(place)
}

// with adds a place that is not there yet.
func (p kernelPlaces) with(place kernelCode) kernelPlaces {
	for i := range p {
		if have := &p[i]; have.object == place.object && have.section == place.section && have.address == place.address {
			have.size = max(have.size, place.size)
			return p
		}
	}
	return append(p, place)
}

// find finds the code of a kernel. The name is its linkage name, or as profilers write it: with
// the suffix of its descriptor (NAME.kd), demangled as GNU or LLVM do it, or cut to the name of
// the function alone. problem is why there is none: "" where there is one.
func (k *kernelObjects) find(name string) (place kernelCode, problem string) {
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".kd"), " [clone .kd]")
	places := k.linkage[name]
	if places == nil {
		k.readNames()
		places = k.readable[nameKey(name)]
	}
	switch {
	case places == nil && k.failed != nil:
		return place, fmt.Sprintf("no object that was given has it, as far as they can be read: %v", k.failed)
	case places == nil:
		return place, "no object that was given has it"
	}
	for _, other := range places[1:] {
		if !places[0].isCopy(&other) {
			return place, fmt.Sprintf("it may be %s or %s: give only what was loaded", &places[0], &other)
		}
	}
	return places[0], ""
}

// isCopy reports whether a place is the same in a copy of the object.
func (c *kernelCode) isCopy(other *kernelCode) bool {
	return c.object != other.object && c.section == other.section && c.address == other.address && bytes.Equal(c.object.Data(), other.object.Data())
}

// String returns the place as messages have it.
func (c *kernelCode) String() string {
	if c.section != "" {
		return fmt.Sprintf("%s section %s offset %#x", c.object.Name(), c.section, c.address)
	}
	return fmt.Sprintf("%s address %#x", c.object.Name(), c.address)
}

// readNames makes the index of spellings of names. A demangled name goes before one that is
// cut.
func (k *kernelObjects) readNames() {
	if k.readable != nil {
		return
	}
	k.readable = map[string]kernelPlaces{}
	short := map[string]kernelPlaces{}
	for _, name := range slices.Sorted(maps.Keys(k.linkage)) {
		for _, demangled := range demangledNames(name) {
			addPlaces(k.readable, nameKey(demangled), k.linkage[name])
			addPlaces(short, nameKey(shortName(demangled)), k.linkage[name])
		}
	}
	for name, places := range short {
		if k.readable[name] == nil {
			k.readable[name] = places
		}
	}
}

func addPlaces(index map[string]kernelPlaces, key string, places kernelPlaces) {
	for _, place := range places {
		if key != "" {
			index[key] = index[key].with(place)
		}
	}
}

// demangledNames returns the results of demanglers for a linkage name.
func demangledNames(name string) []string {
	if symbol.IsMangled(name) {
		return []string{symbol.DemangleGNU(name), symbol.Demangle(name)}
	}
	// unitrace's demangler (__cxa_demangle) takes short names for types.
	if typeName := builtinTypes[name]; typeName != "" {
		return []string{typeName}
	}
	return nil
}

// builtinTypes are types by their names in the ABI of C++.
var builtinTypes = map[string]string{
	"a": "signed char", "b": "bool", "c": "char", "d": "double", "e": "long double", "f": "float", "g": "__float128", "h": "unsigned char",
	"i": "int", "j": "unsigned int", "l": "long", "m": "unsigned long", "n": "__int128", "o": "unsigned __int128", "s": "short",
	"t": "unsigned short", "v": "void", "w": "wchar_t", "x": "long long", "y": "unsigned long long", "z": "...",
}

// nameKey returns a demangled name without the parts that demanglers write differently.
func nameKey(name string) string {
	return strings.ReplaceAll(strings.TrimPrefix(name, "typeinfo name for "), " ", "")
}

// shortName returns a demangled name without arguments, parameters of templates, types and
// scopes, as profilers cut it: "gemm" of "void ns::gemm<float>(float*)".
func shortName(name string) string {
	const open, closed = "(<[{", ")>]}"
	name = strings.TrimRight(name, " ")
	for name != "" {
		kind := strings.IndexByte(closed, name[len(name)-1])
		if kind < 0 {
			break
		}
		depth, i := 0, len(name)-1
		for ; i >= 0; i-- {
			switch name[i] {
			case closed[kind]:
				depth++
			case open[kind]:
				depth--
			}
			if depth == 0 {
				break
			}
		}
		name = strings.TrimRight(name[:max(i, 0)], " ")
	}
	return name[strings.LastIndexAny(name, " :")+1:]
}
