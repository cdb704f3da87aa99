// SPDX-License-Identifier: Apache-2.0

package disassembler

import (
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/internal/ondemand"
	"github.com/unwindd/unwindd/sdk"
)

// llvm-mc reads each instruction once, in brackets on its own line, which it decodes as a whole.
// It reports lines that it does not know. It has no addresses, and the encoding that it shows
// comes from assembling the text again: it may be another encoding of the same instruction.

func machineCodeArgs(t sdk.LLVMTarget) []string {
	return append(targetArgs(t), "--disassemble", "--show-encoding")
}

// targetArgs returns the arguments that the tools have in common.
func targetArgs(t sdk.LLVMTarget) []string {
	args := []string{"--triple=" + t.Triple}
	if t.CPU != "" {
		args = append(args, "--mcpu="+t.CPU)
	}
	if t.Features != "" {
		args = append(args, "--mattr="+t.Features)
	}
	return args
}

// each calls f with every instruction.
func each(list []Stretch, f func(stretch, index int, address uint64, code []byte)) {
	for i := range list {
		code, address := list[i].Bytes, list[i].Address
		for k, size := range list[i].Sizes {
			f(i, k, address, code[:size])
			code, address = code[size:], address+uint64(size)
		}
	}
}

// distinct returns the instructions of stretches, each once, in order of appearance.
func distinct(list []Stretch) (codes []string, index map[string]int) {
	index = map[string]int{}
	each(list, func(_, _ int, _ uint64, code []byte) {
		if _, isMet := index[string(code)]; !isMet {
			index[string(code)] = len(codes)
			codes = append(codes, string(code))
		}
	})
	return codes, index
}

func machineCodeInput(list []Stretch) []byte {
	codes, _ := distinct(list)
	var b []byte
	for _, code := range codes {
		b = append(b, '[')
		for i := range len(code) {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(append(b, "0x"...), hex.EncodeToString([]byte{code[i]})...)
		}
		b = append(b, "]\n"...)
	}
	return b
}

// complaint matches llvm-mc's message about a line of its input.
var complaint = ondemand.Regexp(`(?m)^[^\n:]*:([0-9]+):[0-9]+: (?:warning|error): `)

// encoded is a line of llvm-mc's output.
type encoded struct {
	text string
	code string // bytes; "" unless all of them are known
	size uint32
}

func readMachineCode(out *plugin.Output, list []Stretch, found *found) {
	codes, index := distinct(list)
	isBad := make([]bool, len(codes))
	good := len(codes)
	for _, m := range complaint().FindAllSubmatch(out.Stderr, -1) {
		line, err := strconv.Atoi(string(m[1]))
		if err == nil && line >= 1 && line <= len(codes) && !isBad[line-1] {
			isBad[line-1] = true
			good--
		}
	}
	var lines []encoded
	for line := range strings.Lines(string(out.Stdout)) {
		if e, ok := parseEncoded(line); ok {
			lines = append(lines, e)
		}
	}
	found.lineCount = len(lines) + len(codes) - good
	if len(lines) == good {
		next := 0
		results := make([]encoded, len(codes))
		for i := range codes {
			if !isBad[i] {
				results[i] = lines[next]
				next++
			}
		}
		found.take(list, func(code []byte) encoded { return results[index[string(code)]] })
		return
	}
	// The tool decodes some instruction as several. Only lines with equal bytes are
	// certain.
	byCode := make(map[string]encoded, len(lines))
	for _, e := range lines {
		byCode[e.code] = e
	}
	found.take(list, func(code []byte) encoded {
		if e, ok := byCode[string(code)]; ok {
			return e
		}
		return encoded{size: ^uint32(0)}
	})
}

// take stores the tool's result for each instruction by its bytes.
func (f *found) take(list []Stretch, result func(code []byte) encoded) {
	each(list, func(i, k int, _ uint64, code []byte) {
		e := result(code)
		f.texts[i][k], f.sizes[i][k] = e.text, e.size
	})
}

// parseEncoded reads "TEXT ; encoding: [0x00,0x01]". The character that begins a comment depends
// on the target.
func parseEncoded(line string) (e encoded, ok bool) {
	const mark = "encoding: ["
	index := strings.LastIndex(line, mark)
	if index < 0 {
		return e, false
	}
	text := strings.TrimRight(line[:index], " \t")
	for _, comment := range []string{";", "#", "@", "//"} {
		text = strings.TrimSuffix(text, comment)
	}
	e.text = textOf(text)
	list, _, _ := strings.Cut(line[index+len(mark):], "]")
	var code []byte
	for part := range strings.SplitSeq(list, ",") {
		e.size++
		if n, err := strconv.ParseUint(part, 0, 8); err == nil {
			code = append(code, byte(n))
		}
	}
	if len(code) == int(e.size) {
		e.code = string(code)
	}
	return e, true
}
