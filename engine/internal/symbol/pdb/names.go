// SPDX-License-Identifier: Apache-2.0

package pdb

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/symbol/codeview"
	"github.com/unwindd/unwindd/engine/trace"
)

// isNameOf reports whether a procedure's qualified name may be that of a public symbol.
func isNameOf(name, public string) bool {
	last := name[strings.LastIndexByte(name, ':')+1:]
	return last != "" && strings.Contains(public, last) || name == public
}

// anonymous is how MSVC writes a namespace without a name in names that are not decorated: with a
// hash of the file.
var anonymous = regexp.MustCompile(`\?A0x[0-9a-f]+::`)

// withAnonymous writes namespaces without a name as in undecorated names.
func withAnonymous(name string) string {
	if !strings.Contains(name, "?A0x") {
		return name
	}
	return anonymous.ReplaceAllString(name, "`anonymous namespace'::")
}

// inlineeSymbol is an inlined call without its position.
func (f *File) inlineeSymbol(x *moduleIndex, id uint32) trace.Symbol {
	own := f.inlineeName(x, id)
	s := trace.Symbol{Name: own, Inlined: true}
	if s.Function = withAnonymous(own); s.Function != own {
		s.LinkageName = own
	}
	return s
}

// nameKey is an identifier of a module; of none where it is not a reference to another module's.
type nameKey struct {
	module *moduleIndex
	id     uint32
}

// nameCache keeps names of inlined functions.
type nameCache struct {
	names map[nameKey]string
	bytes int
}

// maxCached bounds the bytes of the names that are kept.
const maxCached = 1 << 20

// inlineeName is the qualified name of an inlined function by its identifier in a module.
func (f *File) inlineeName(x *moduleIndex, id uint32) string {
	key := nameKey{id: id}
	if id&isCrossModule != 0 {
		key.module = x
	}
	f.mu.Lock()
	name, ok := f.inlinees.names[key]
	f.mu.Unlock()
	if ok {
		return name
	}
	name = f.identifierName(x, id)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.inlinees.names == nil || f.inlinees.bytes > maxCached {
		f.inlinees = nameCache{names: map[nameKey]string{}}
	}
	f.inlinees.names[key] = name
	f.inlinees.bytes += len(name) + 64
	return name
}

func (f *File) identifierName(x *moduleIndex, id uint32) string {
	if global, ok := f.identifier(x, id); ok {
		if t := f.types(); t.ids != nil {
			if name := t.ids.FunctionName(codeview.TypeIndex(global)); name != "" {
				return name
			}
		}
	}
	return fmt.Sprintf("[identifier %#x]", id)
}
