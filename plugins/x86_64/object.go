package x86_64

import (
	"context"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/sdk"
)

// outermostNames are the functions that nothing calls: where the kernel, a
// dynamic linker or a thread's creator starts, by symbol.
//
// Of Go they are those that its assembler marks TOPFRAME
// (src/runtime/asm_amd64.s), and the entry points that jump to rt0_go.
// runtime.sigtramp is marked too, but the kernel calls it, and what the signal
// interrupted is below it; runtime.mcall and systemstack switch stacks and
// return.
var outermostNames = []string{
	"_start",
	"_dl_start_user",
	"_rt0_amd64",
	"_rt0_amd64_linux",
	"runtime.goexit",
	"runtime.mstart",
	"runtime.rt0_go",
}

// outermost says whether a function of that name is outermost. Go's linker may
// add the ABI to a name.
func outermost(name string) bool {
	return slices.Contains(outermostNames, strings.TrimSuffix(name, ".abi0"))
}

// OpenObject finds the outermost functions of a code object, and whether it is
// Go's: Go's functions preserve no register for their callers (Go internal ABI,
// "Architecture specifics, amd64").
func (architecture) OpenObject(_ context.Context, _ sdk.Engine, req *sdk.OpenObjectRequest) (*sdk.OpenObjectAnswer, error) {
	answer := &sdk.OpenObjectAnswer{}
	if req.Machine != machine {
		return answer, nil
	}
	if isGo(req.Sections) {
		answer.DefaultRules = defaultRules(false)
	}
	for _, s := range req.Symbols {
		if !outermost(s.Name) {
			continue
		}
		if end := symbolEnd(req, &s); end > s.Address {
			answer.Functions = append(answer.Functions, sdk.Function{Name: s.Name, Start: s.Address, End: end, Kind: sdk.OutermostFunction})
		}
	}
	slices.SortFunc(answer.Functions, func(a, b sdk.Function) int {
		switch {
		case a.Start < b.Start:
			return -1
		case a.Start > b.Start:
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
	// .symtab and .dynsym may both name a function.
	answer.Functions = slices.CompactFunc(answer.Functions, func(a, b sdk.Function) bool { return a.Start == b.Start })
	return answer, nil
}

// isGo says whether the Go linker made a code object.
func isGo(sections []sdk.SectionInfo) bool {
	return slices.ContainsFunc(sections, func(s sdk.SectionInfo) bool {
		switch s.Name {
		case ".gopclntab", ".data.rel.ro.gopclntab", ".note.go.buildid":
			return true
		}
		return false
	})
}

// symbolEnd is where a function ends. Those in assembly language often have no
// size: then the next symbol or the end of the section bounds them.
func symbolEnd(req *sdk.OpenObjectRequest, s *sdk.SymbolInfo) uint64 {
	end := s.Address + s.Size
	if s.Size > 0 && end > s.Address {
		return end
	}
	end = s.Address
	for i := range req.Sections {
		if x := &req.Sections[i]; s.Address-x.Address < x.Size && x.Address+x.Size > x.Address {
			end = x.Address + x.Size
			break
		}
	}
	for i := range req.Symbols {
		if a := req.Symbols[i].Address; a > s.Address && a < end {
			end = a
		}
	}
	return end
}
