// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"fmt"
	"unicode/utf8"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/internal/ondemand"
)

// augmentations matches an augmentation string: vendors with their versions and optional
// further text (heterogeneous extension, A.3.1.1).
var augmentations = ondemand.Regexp(`^(\[[^\[\]:]+:v(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(:[^\]]*)?\])*$`)

// problems are the faults of a unit that can be read.
func (b *body) problems() (list []error) {
	root, err := b.entryAt(b.first)
	if err != nil {
		return nil
	}
	text, _, err := root.Text(dw.AttrLLVMAugmentation)
	switch {
	case err != nil:
		list = append(list, err)
	case !utf8.ValidString(text) || !augmentations().MatchString(text):
		list = append(list, b.wrong(root.off, "DW_AT_LLVM_augmentation is %q, expected [vendor:vX.Y:options] once or more", text))
	}
	return append(list, b.addressSizes(root)...)
}

// addressSizes compares the size of addresses in the unit with its size in the unit's parts
// of other sections, whose headers end at the base that the unit states (DWARF 5, 7.27 to
// 7.29).
func (b *body) addressSizes(root Entry) (list []error) {
	if b.format.version < 5 {
		return nil
	}
	main, file := b.main(), b.file
	lists, _ := b.file.loclists.get(func() ([]byte, error) { return b.file.read(".debug_loclists") })
	for _, s := range []struct {
		attr    dw.Attr
		section string
		data    []byte
		rest    *object.Contents // of a section that is unpacked on demand
		base    uint64
		back    uint64 // distance from the base back to the size
	}{
		{dw.AttrAddrBase, ".debug_addr", main.addr, main.rest.addr, b.addrBase, 2},
		{dw.AttrRnglistsBase, ".debug_rnglists" + file.suffix, file.rnglists, file.rest.rnglists, b.rnglistsBase, 6},
		{dw.AttrLoclistsBase, ".debug_loclists" + file.suffix, lists, nil, b.loclistsBase, 6},
	} {
		if !root.Has(s.attr) || s.base < s.back || s.base-s.back >= uint64(len(s.data)) || s.rest.Need(s.base) != nil {
			continue
		}
		if size := s.data[s.base-s.back]; size != b.format.addrSize {
			list = append(list, bad(s.section, s.base-s.back, "addresses of %d bytes, those of the unit at %#x of %s have %d", size, b.offset, b.section(), b.format.addrSize))
		}
	}
	return list
}

// checkAugmentation checks the augmentation string of a name index (DWARF 5, 6.1.1.4.1):
// its format is only recommended.
func checkAugmentation(text string, offset uint64) error {
	if !utf8.ValidString(text) {
		return bad(".debug_names", offset, "the augmentation string is %s, expected UTF-8", fmt.Sprintf("%q", text))
	}
	return nil
}
