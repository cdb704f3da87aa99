package symbolfile

import (
	"debug/elf"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/symbol/breakpad"
	"github.com/unwindd/unwindd/engine/target"
)

// The reasons why an object has no symbol file.
var (
	ErrNotLoaded  = errors.New("a symbol file is one of an executable or a shared library")
	ErrNoArch     = errors.New("Breakpad has no name for its machine")
	ErrNoIdentity = errors.New("it has no build ID, and no .text to make one of")
)

// architectures are Breakpad's names of machines ("MODULE records").
var architectures = map[elf.Machine]string{
	elf.EM_386: "x86", elf.EM_X86_64: "x86_64", elf.EM_ARM: "arm", elf.EM_AARCH64: "arm64", elf.EM_MIPS: "mips",
	elf.EM_PPC: "ppc", elf.EM_PPC64: "ppc64", elf.EM_S390: "s390", elf.EM_SPARC: "sparc", elf.EM_SPARCV9: "sparcv9", elf.EM_RISCV: "riscv",
}

// Identify is what a symbol file and stores of them call a code object: its MODULE
// record, and the digits of its CODE_ID record. They are those of Breakpad's dump_syms:
// the name is DT_SONAME, as it is for writers of minidumps, or else the file's.
func Identify(o *object.Object) (m breakpad.Module, codeID string, err error) {
	if !o.IsELF() || o.Type() == elf.ET_REL || len(o.Segments()) == 0 {
		return m, "", fmt.Errorf("%s: %w", o.Name(), ErrNotLoaded)
	}
	arch := architectures[elf.Machine(o.Machine())]
	if arch == "" {
		return m, "", fmt.Errorf("%s: %w (%s)", o.Name(), ErrNoArch, elf.Machine(o.Machine()))
	}
	name := o.SharedName()
	if name == "" {
		name = filepath.Base(o.Name())
	}
	id := o.BuildID()
	if len(id) == 0 {
		if id, err = textHash(o); err != nil {
			return m, "", fmt.Errorf("%s: %w", o.Name(), err)
		}
	}
	symbols := target.ELFSymbols(name, id)
	return breakpad.Module{OS: "Linux", Arch: arch, ID: symbols.DebugID, Name: name}, strings.ToUpper(symbols.CodeID), nil
}

// hashedText is how much of .text is hashed, in bytes, and hashSize the size of the hash.
const (
	hashedText = 4096
	hashSize   = 16
)

// textHash is what Breakpad identifies a file by that has no build ID: the first page of
// its .text, of which all pieces of 16 bytes are combined by exclusive or. The last one
// reaches behind the section where that ends within it.
func textHash(o *object.Object) (hash []byte, err error) {
	text := o.Section(".text")
	if text == nil || text.Type == elf.SHT_NOBITS || text.Size == 0 {
		return nil, ErrNoIdentity
	}
	hash = make([]byte, hashSize)
	err = object.Guard(func() error {
		size := min(text.Size, hashedText)
		size += -size % hashSize
		if data := o.Data(); text.Offset < uint64(len(data)) {
			data = data[text.Offset:]
			for i, b := range data[:min(uint64(len(data)), size)] {
				hash[i%hashSize] ^= b
			}
		}
		return nil
	})
	return hash, err
}
