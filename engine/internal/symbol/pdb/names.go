// SPDX-License-Identifier: Apache-2.0

package pdb

import (
	"cmp"
	"strings"
)

// machineX86 is the machine of 32-bit x86 (IMAGE_FILE_MACHINE_I386).
const machineX86 = 0x14c

// withoutConvention cuts from a name of C what tells its calling convention on 32-bit x86.
func withoutConvention(name string) string {
	if name == "" || name[0] == '?' {
		return name
	}
	base := name
	if i := strings.LastIndexByte(name, '@'); i >= 0 && strings.Trim(name[i+1:], "0123456789") == "" {
		base = name[:i]
		if vectorcall, ok := strings.CutSuffix(base, "@"); ok {
			return cmp.Or(vectorcall, name)
		}
	}
	if base != "" && (base[0] == '_' || base[0] == '@') {
		base = base[1:]
	}
	return cmp.Or(base, name)
}

// isNameOf reports whether a procedure's qualified name may be that of a public symbol.
func isNameOf(name, public string) bool {
	last := name[strings.LastIndexByte(name, ':')+1:]
	return last != "" && strings.Contains(public, last) || name == public
}

// nameCache keeps names of inlined functions.
type nameCache struct {
	names map[uint32]string
	bytes int
}

// maxCached bounds the bytes of the names that are kept.
const maxCached = 1 << 20

// inlineeName is the qualified name of an inlined function.
func (f *File) inlineeName(id uint32) string {
	f.mu.Lock()
	name, ok := f.inlinees.names[id]
	f.mu.Unlock()
	if ok {
		return name
	}
	name = f.types().name(id)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.inlinees.names == nil || f.inlinees.bytes > maxCached {
		f.inlinees = nameCache{names: map[uint32]string{}}
	}
	f.inlinees.names[id] = name
	f.inlinees.bytes += len(name) + 64
	return name
}
