// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"debug/elf"

	"github.com/unwindd/unwindd/engine/internal/symbol/kallsyms"
	"github.com/unwindd/unwindd/engine/object"
)

// kernelImages are the places where systems have a kernel's image with its symbols, before and
// behind its release.
var kernelImages = [][2]string{
	{"/usr/lib/debug/boot/vmlinux-", ""},
	{"/boot/vmlinux-", ""},
	{"/usr/lib/debug/lib/modules/", "/vmlinux"},
	{"/lib/modules/", "/build/vmlinux"},
}

// imageNames returns the names in the image of a kernel of a build ID on this machine; nil where
// there is none. Servers are not asked: an image has hundreds of megabytes.
func (r *recording) imageNames(id []byte) *kallsyms.Table {
	release := r.file.Features().OSRelease
	if len(id) == 0 {
		return nil
	}
	finder := r.finder
	finder.Remote, finder.Symbols, finder.Exe, finder.Provided = nil, nil, "", nil
	for _, place := range kernelImages {
		found := finder.Find(place[0]+release+place[1], id, false)
		if found.Object == nil {
			continue
		}
		table := imageSymbols(found.Object, found.Path)
		isRight := found.Checked
		_ = found.Object.Close()
		if isRight && table != nil {
			return table
		}
	}
	return nil
}

// imageSymbols returns the symbols of a kernel's image.
func imageSymbols(o *object.Object, path string) *kallsyms.Table {
	c := kallsyms.NewCollector(path)
	sections := o.Sections()
	err := o.EachSymbol(func(s *object.Symbol) {
		if s.Name == "" || !s.Defined() || s.Type > elf.STT_FUNC {
			return
		}
		isCode := uint64(s.Section) < uint64(len(sections)) && sections[s.Section].Flags&elf.SHF_EXECINSTR != 0
		c.Add(s.Name, s.Address, isCode)
	})
	if err != nil {
		return nil
	}
	return c.Table()
}
