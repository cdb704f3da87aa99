// SPDX-License-Identifier: Apache-2.0

package disassembler

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/internal/ondemand"
	"github.com/unwindd/unwindd/sdk"
)

// nvdisasm reads the code of all stretches as one, from a file that it seeks in. It lists
// addresses from a base on. The places that branches go to are addresses too, which are counted
// from the same base: they are put right for the stretch that the branch is in. cuobjdump is a
// program that starts nvdisasm, which the sandbox does not let it do.

// nvidiaBase is the base. Addresses of a GPU and constants in instructions have fewer bits.
const nvidiaBase = 0x0f00000000000000

// nvidiaRuns bounds how often the tool is run for the same code: it gives no text where it does not
// know an instruction, but says which it does not know.
const nvidiaRuns = 4

// nvidiaBundle is the alignment of code before sm_70, where instructions have 8 bytes and the first
// word of every four schedules the other three; nvidiaSchedule is one that waits for everything.
const (
	nvidiaBundle   = 32
	nvidiaNarrow   = 8
	nvidiaSchedule = 0x001f8000fc0007e0
	nvidiaNothing  = 0x50b0000000070f00 // NOP of sm_50 to sm_62
)

// isSchedule reports whether an instruction schedules others.
func isSchedule(address uint64, code []byte) bool {
	return len(code) == nvidiaNarrow && address%nvidiaBundle == 0
}

// nvidiaArgs returns the arguments for a target as the architecture's plugin names it: its CPU is
// sm_90a, which the tool calls SM90a.
func nvidiaArgs(t sdk.LLVMTarget) []string {
	processor := "SM" + strings.TrimPrefix(t.CPU, "sm_")
	return []string{"--binary", processor, "--base-address", fmt.Sprintf("%#x", uint64(nvidiaBase)), "/dev/stdin"}
}

// nvidiaProgram returns the program that is run for a path: nvdisasm beside cuobjdump.
func nvidiaProgram(path string) (string, error) {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	if name := filepath.Base(path); !strings.HasPrefix(name, "cuobjdump") {
		return path, nil
	}
	beside := filepath.Join(filepath.Dir(path), "nvdisasm")
	if _, err := os.Stat(beside); err != nil {
		return "", errors.New("starts nvdisasm, which is not beside it: name nvdisasm")
	}
	return beside, nil
}

// nvidiaOffsets returns where each stretch is in the tool's input.
func nvidiaOffsets(list []Stretch) (offsets []uint64, size uint64) {
	for i := range list {
		size += (list[i].Address - size) % nvidiaBundle
		offsets = append(offsets, size)
		size += uint64(len(list[i].Bytes))
	}
	return offsets, size
}

// nvidiaInput joins the code of stretches.
func nvidiaInput(list []Stretch) []byte {
	offsets, size := nvidiaOffsets(list)
	b := make([]byte, 0, size+nvidiaBundle)
	for i := range list {
		b = padded(b, offsets[i], &list[i])
		each(list[i:i+1], func(_, _ int, address uint64, code []byte) {
			if isSchedule(address, code) { // instructions that it pairs may be padding here
				code = binary.LittleEndian.AppendUint64(nil, nvidiaSchedule)
			}
			b = append(b, code...)
		})
	}
	if n := len(list); n > 0 && isNarrow(&list[n-1]) {
		b = padded(b, (size+nvidiaBundle-1)/nvidiaBundle*nvidiaBundle, &list[n-1]) // the tool wants whole bundles
	}
	return b
}

// isNarrow reports whether the instructions of a stretch have 8 bytes.
func isNarrow(s *Stretch) bool { return len(s.Sizes) > 0 && s.Sizes[0] == nvidiaNarrow }

// padded appends copies of the code of a stretch, which the tool knows where it knows the stretch, up
// to an end; before sm_70 instructions that do nothing, and words that schedule them.
func padded(b []byte, end uint64, s *Stretch) []byte {
	filler := s.Bytes
	if isNarrow(s) {
		filler = binary.LittleEndian.AppendUint64(nil, nvidiaNothing)
	}
	for uint64(len(b)) < end && len(filler) > 0 {
		next := filler
		if isNarrow(s) && len(b)%nvidiaBundle == 0 {
			next = binary.LittleEndian.AppendUint64(nil, nvidiaSchedule)
		}
		b = append(b, next[:min(uint64(len(next)), end-uint64(len(b)))]...)
	}
	return b
}

var (
	// nvidiaLine is a line of the listing: an address in a comment, and a text that ends in ";"
	// or, where two instructions are paired, in "}" or is within braces.
	nvidiaLine = ondemand.Regexp(`^\s*/\*([0-9a-f]+)\*/\s*[{]?\s*(.*?)\s*;?\s*[}]?\s*$`)
	// nvidiaPlace is an address that is counted from the base.
	nvidiaPlace = ondemand.Regexp(`0x[ef][0-9a-f]{14}\b`)
	// nvidiaUnknown is the message about an instruction that the tool does not know.
	nvidiaUnknown = ondemand.Regexp(`(?m)^nvdisasm error\s*:.* at address 0x([0-9a-f]+)\s*$`)
)

// unknownNVIDIA returns the addresses of instructions that the tool does not know, as it counts
// them.
func unknownNVIDIA(stderr []byte) map[uint64]bool {
	list := map[uint64]bool{}
	for _, m := range nvidiaUnknown().FindAllSubmatch(stderr, maxInstructions) {
		if n, err := strconv.ParseUint(string(m[1]), 16, 64); err == nil {
			if n < nvidiaBase {
				n += nvidiaBase // nvdisasm 12 leaves the base out
			}
			list[n] = true
		}
	}
	return list
}

func readNVIDIA(out *plugin.Output, list []Stretch, found *found) {
	listed := map[uint64]string{}
	for line := range strings.Lines(string(out.Stdout)) {
		if m := nvidiaLine().FindStringSubmatch(line); m != nil {
			if address, err := strconv.ParseUint(m[1], 16, 64); err == nil {
				listed[address] = m[2]
				found.lineCount++
			}
		}
	}
	offsets, _ := nvidiaOffsets(list)
	for i := range list {
		start := nvidiaBase + offsets[i]
		each(list[i:i+1], func(_, k int, address uint64, code []byte) {
			text, isListed := listed[start+address-list[i].Address]
			if !isListed && isSchedule(address, code) {
				text, isListed = fmt.Sprintf("0x%016x // schedules the next three", binary.LittleEndian.Uint64(code)), true
			}
			if !isListed {
				return
			}
			// The tool's instructions all have the length that the processor's have.
			found.texts[i][k], found.sizes[i][k] = textOf(placed(text, start, list[i].Address)), uint32(len(code)) //nolint:gosec // of an instruction
		})
	}
}

// placed replaces the addresses in a text that are counted from the tool's base.
func placed(text string, start, address uint64) string {
	return nvidiaPlace().ReplaceAllStringFunc(text, func(word string) string {
		n, err := strconv.ParseUint(word[2:], 16, 64)
		if err != nil {
			return word
		}
		return fmt.Sprintf("%#x", n-start+address)
	})
}

// nvidiaPart is a sequence of instructions of a stretch.
type nvidiaPart struct {
	stretch, first int // the stretch, and the instruction of it that the part begins with
}

// partsWithout returns stretches without some of their instructions, which are named by the number of
// the stretch and theirs in it.
func partsWithout(list []Stretch, unknown map[[2]int]bool) (parts []Stretch, origins []nvidiaPart) {
	isIn := false
	each(list, func(i, k int, address uint64, code []byte) {
		if isIn = isIn && k > 0 && !unknown[[2]int{i, k}]; !isIn {
			if unknown[[2]int{i, k}] {
				return
			}
			parts, origins = append(parts, Stretch{Address: address}), append(origins, nvidiaPart{i, k})
			isIn = true
		}
		last := &parts[len(parts)-1]
		last.Bytes, last.Sizes = append(last.Bytes, code...), append(last.Sizes, uint32(len(code))) //nolint:gosec // of an instruction
	})
	return parts, origins
}

// askNVIDIA runs nvdisasm, again without the instructions that it does not know.
func (p *Program) askNVIDIA(ctx context.Context, t sdk.LLVMTarget, list []Stretch, f *found, count int) error {
	program, err := nvidiaProgram(p.path)
	if err != nil {
		return err
	}
	unknown := map[[2]int]bool{}
	for range nvidiaRuns {
		parts, origins := partsWithout(list, unknown)
		if len(parts) == 0 {
			f.lineCount = count
			return nil
		}
		out, err := p.runner.Run(ctx, plugin.Program{
			Path: program, Args: nvidiaArgs(t), Input: nvidiaInput(parts), InputIsFile: true,
			MaxOutput: baseOutput + count*outputPerLine, Deadline: p.processor, WallDeadline: p.wall,
		})
		if err != nil {
			return err
		}
		if marks := unknownNVIDIA(out.Stderr); len(marks) > 0 {
			before := len(unknown)
			markUnknown(parts, origins, marks, unknown)
			if len(unknown) > before {
				continue
			}
		}
		if err := refusal(out, "fatal"); err != nil {
			return err
		}
		g := newFound(parts)
		readNVIDIA(out, parts, g)
		for i, o := range origins {
			copy(f.texts[o.stretch][o.first:], g.texts[i])
			copy(f.sizes[o.stretch][o.first:], g.sizes[i])
		}
		if f.lineCount = g.lineCount; f.lineCount == 0 {
			return refusal(out, "")
		}
		return nil
	}
	return fmt.Errorf("does not know more instructions each time that it is run without the others, %d times", nvidiaRuns)
}

// refusal returns an error with the first line of a tool's messages that contains a text; nil: none
// does.
func refusal(out *plugin.Output, text string) error {
	if line := lineWith(out.Stderr, text); line != "" {
		return fmt.Errorf("gave no instruction, and exit status %d: %s", out.Status, line)
	}
	return nil
}

// markUnknown adds the instructions of parts at addresses that the tool counts.
func markUnknown(parts []Stretch, origins []nvidiaPart, marks map[uint64]bool, unknown map[[2]int]bool) {
	offsets, _ := nvidiaOffsets(parts)
	each(parts, func(i, k int, address uint64, _ []byte) {
		if marks[nvidiaBase+offsets[i]+address-parts[i].Address] {
			unknown[[2]int{origins[i].stretch, origins[i].first + k}] = true
		}
	})
}
