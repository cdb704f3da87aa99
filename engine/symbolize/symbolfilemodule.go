// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"cmp"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/pe"
	"github.com/unwindd/unwindd/engine/internal/symbol/breakpad"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
)

// The reasons why an object has no symbol file.
var (
	ErrNotLoaded  = errors.New("a symbol file is one of an executable or a shared library")
	ErrNoArch     = errors.New("Breakpad has no name for its machine")
	ErrNoIdentity = errors.New("it has no build ID, and no .text to make one of")
	ErrNoUUID     = errors.New("it has no UUID")
	ErrNoCodeView = errors.New("it has no CodeView record, which says its identifier (link it with --build-id)")
)

// breakpadArchitectures are Breakpad's names of machines ("MODULE records").
var breakpadArchitectures = map[elf.Machine]string{
	elf.EM_386: "x86", elf.EM_X86_64: "x86_64", elf.EM_ARM: "arm", elf.EM_AARCH64: "arm64", elf.EM_MIPS: "mips",
	elf.EM_PPC: "ppc", elf.EM_PPC64: "ppc64", elf.EM_S390: "s390", elf.EM_SPARC: "sparc", elf.EM_SPARCV9: "sparcv9", elf.EM_RISCV: "riscv",
}

// SymbolStorePath returns the path of the symbol file beneath a store: NAME/ID/NAME.sym, for
// NAME.pdb, too. It refuses a name that would lead out of the store.
func (f *File) SymbolStorePath() (string, error) {
	m, _, err := f.Identify()
	if err != nil {
		return "", err
	}
	if !filepath.IsLocal(m.Name) || filepath.Base(m.Name) != m.Name {
		return "", fmt.Errorf("%s: DT_SONAME %q, expected the name of a file", f.Object.Name(), m.Name)
	}
	return filepath.Join(m.Name, m.ID, object.SymbolFileName(m.Name)), nil
}

// Identify returns the name of a file in symbol files and in stores of them: its
// MODULE record, and the digits of its CODE_ID record. They are as in Breakpad's dump_syms:
// the name is DT_SONAME, as it is for writers of minidumps, or else the file's. A PE file has
// its identifier, and perhaps a name, in its CodeView record; a PDB file has no CODE_ID.
func (f *File) Identify() (m breakpad.Module, codeID string, err error) {
	o := f.Object
	if o.IsForeign() || o.IsRelocatable() || o.Type() == elf.ET_REL || len(o.Segments()) == 0 && !o.IsPDB() {
		return m, "", fmt.Errorf("%s: %w", o.Name(), ErrNotLoaded)
	}
	arch := breakpadArchitectures[elf.Machine(o.Machine())]
	if arch == "" {
		return m, "", fmt.Errorf("%s: %w (%s)", o.Name(), ErrNoArch, elf.Machine(o.Machine()))
	}
	switch {
	case o.IsPE():
		return identifyPE(o, arch)
	case o.IsPDB():
		return identifyPDB(o, arch), "", nil
	case o.IsMachO():
		m, err := identifyMachO(o)
		return m, "", err
	}
	name := cmp.Or(o.SharedName(), filepath.Base(o.Name()))
	id := o.BuildID()
	if len(id) == 0 {
		id = o.TextID()
	}
	if len(id) == 0 {
		return m, "", fmt.Errorf("%s: %w", o.Name(), ErrNoIdentity)
	}
	symbols := target.ELFSymbols(name, id)
	return breakpad.Module{OS: "Linux", Arch: arch, ID: symbols.DebugID, Name: name}, strings.ToUpper(symbols.CodeID), nil
}

// identifyPE is Identify of a PE file.
func identifyPE(o *object.Object, arch string) (m breakpad.Module, codeID string, err error) {
	var id pe.Identity
	if err := object.Guard(func() (err error) { id, err = o.PE().Identity(); return err }); err != nil {
		return m, "", fmt.Errorf("%s: %w", o.Name(), err)
	}
	if !id.HasCodeView {
		return m, "", fmt.Errorf("%s: %w", o.Name(), ErrNoCodeView)
	}
	file := filepath.Base(o.Name())
	name := cmp.Or(object.LastPart(id.PDB), file)
	return breakpad.Module{OS: "windows", Arch: arch, ID: id.DebugID(), Name: name}, id.CodeID() + " " + file, nil
}

// identifyMachO is Identify of a Mach-O file: its name is that of the file, its identifier the UUID and an age of 0.
func identifyMachO(o *object.Object) (m breakpad.Module, err error) {
	id := o.BuildID()
	if len(id) == 0 {
		return m, fmt.Errorf("%s: %w", o.Name(), ErrNoUUID)
	}
	name, _, _ := strings.Cut(filepath.Base(o.Name()), "#")
	return breakpad.Module{OS: "mac", Arch: o.MachO().MachineName(), ID: strings.ToUpper(hex.EncodeToString(id)) + "0", Name: name}, nil
}

// identifyPDB is Identify of a PDB file.
func identifyPDB(o *object.Object, arch string) breakpad.Module {
	return breakpad.Module{OS: "windows", Arch: arch, ID: o.SymbolName(), Name: filepath.Base(o.Name())}
}
