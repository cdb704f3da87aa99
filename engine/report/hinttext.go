// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/signature"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/symbolize"
	"github.com/unwindd/unwindd/engine/trace"
)

// wanted is a module that may lack something which a file would give.
type wanted struct {
	*trace.Module
	info         trace.ModuleInfo
	isExecutable bool // it is the process's executable
	frames       int  // frames without a function
	isFailing    bool // the failing frame is in it
	isPlace      bool // the failing frame has a function and no line
	isRows       bool // callers are guesses, or not known
	isFile       bool // it is a file of the command line
	isReported   bool // its frames are the ones of a report: nothing is walked
}

// FileHint is the hint about a file of the command line.
func FileHint(l *symbolize.Lack) Hint {
	need := NeedNames
	if l.HasNames {
		need = NeedLines
	}
	w := wanted{Module: &trace.Module{Path: l.Path, BuildID: l.BuildID, IsMachO: l.IsMachO}, info: trace.ModuleInfo{Answers: l.Answers}, isFile: true}
	return Hint{Module: l.Path, BuildID: hex.EncodeToString(l.BuildID), Needs: need, Text: w.text(need)}
}

// hint returns the hint about the module; ok is false where nothing is missing that a file would
// give.
func (w *wanted) hint() (h Hint, ok bool) {
	if strings.HasPrefix(w.Path, "[") || w.Path == "" {
		return h, false // the kernel's and the program's own code is in no file
	}
	h = Hint{Module: w.Path, BuildID: hex.EncodeToString(w.BuildID)}
	hasNone := w.info.DebugInfo != trace.DebugInfoFound
	switch {
	case (w.info.IsMissing || w.info.IsDebugOnly) && (w.isRows || w.frames > 0 && hasNone) && !w.isReported:
		h.Needs = NeedFile
	case w.frames > 0 && hasNone && !w.info.HasSymbols && (w.isFailing || w.IsMachO || !isSystemLibrary(w.Path)):
		h.Needs = NeedNames
	case w.isRows && hasNone:
		h.Needs = NeedRows
	case w.isPlace && hasNone:
		h.Needs = NeedLines
	default:
		return h, false
	}
	h.Text = w.text(h.Needs)
	return h, true
}

// lackTexts describe the lacks of modules.
var lackTexts = map[Need]string{
	NeedFile:  "is not here",
	NeedNames: "lacks names here",
	NeedRows:  "has no call frame information here, so that its callers are guesses",
	NeedLines: "has no lines here",
}

// text is the sentence of a hint: the lack, and the options that may help.
func (w *wanted) text(need Need) string {
	name := strings.TrimSuffix(object.LastPart(w.Path), " (deleted)")
	text := name + " " + lackTexts[need]
	var known []string
	switch {
	case w.IsMachO && len(w.BuildID) == uuidSize:
		known = append(known, uuidText(w.BuildID))
	case len(w.BuildID) > 0:
		known = append(known, fmt.Sprintf("build ID %x", w.BuildID))
	case w.Symbols.DebugID != "":
		known = append(known, "debug ID "+w.Symbols.DebugID)
	default:
		known = append(known, "no build ID is known")
	}
	switch {
	case w.info.IsDebugOnly:
		known = append(known, "only its debug file is, so that callers are guesses")
	case w.info.DebugInfo == trace.DebugInfoMismatch:
		known = append(known, "what was found is of another build")
	case w.info.DebugInfo == trace.DebugInfoUnreadable && len(w.info.Answers) == 0: // a server that cannot be asked is one, too
		known = append(known, "what was found cannot be read")
	}
	text += " (" + strings.Join(known, "; ") + "): "
	if w.IsMachO {
		text += w.appleRemedies(need, name)
	} else {
		text += "give " + w.remedies(need, name)
	}
	if len(w.info.Answers) > 0 {
		text += " (asked: " + strings.Join(w.info.Answers, ", ") + ")"
	}
	return text
}

// remedies lists the options that may help.
func (w *wanted) remedies(need Need, name string) string {
	own := w.option(name)
	isByID, isByDebugID := len(w.BuildID) > 0, w.Symbols.DebugID != ""
	whole := "the file before it was stripped"
	if need == NeedLines {
		whole = "a build with debug information" // it may never have had any
	}
	var list []string
	switch {
	case need == NeedFile && isByID:
		list = append(list, "the file with "+own, "the files of its machine with --sysroot DIR")
	case need == NeedFile:
		list = append(list, "the file with "+own)
	case isByID:
		list = append(list, "a file that has them with --debug-dir DIR")
		if need == NeedRows {
			list[0] = "a file that has it with --debug-dir DIR"
		}
	case w.isFile:
		list = append(list, whole)
	default:
		list = append(list, whole+" with "+own)
	}
	switch {
	case len(w.info.Answers) > 0: // one more server may not be there
	case isByID && w.isFile:
		list = append(list, "a server with --debuginfod URL")
	case isByID:
		list = append(list, "a server with --debuginfod URL or --symbols URL")
	case isByDebugID:
		list = append(list, "a store of symbols with --symbols URL")
	}
	return strings.Join(list, ", or ")
}

// macFolders have the programs of macOS itself.
var macFolders = []string{"/usr/libexec/", "/usr/bin/", "/usr/sbin/", "/bin/", "/sbin/"}

// isOfMacOS reports whether an image of macOS or iOS is a file of the system itself.
func isOfMacOS(path string) bool {
	return signature.IsWithMacOS(path) || slices.ContainsFunc(macFolders, func(f string) bool { return strings.HasPrefix(path, f) })
}

// uuidSize is the size of the UUID of a Mach-O file.
const uuidSize = 16

// uuidText is a UUID as the tools of macOS write it.
func uuidText(id []byte) string {
	return fmt.Sprintf("UUID %X-%X-%X-%X-%X", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// option is the option that gives the file of a module.
func (w *wanted) option(name string) string {
	if w.isExecutable {
		return "--exe FILE"
	}
	return fmt.Sprintf("--module %s=FILE", name)
}

// appleRemedies names the files that may help for an image of macOS or iOS.
func (w *wanted) appleRemedies(need Need, name string) string {
	isWalked := !w.isReported && (need == NeedFile || need == NeedRows)
	switch {
	case isOfMacOS(w.Path) && w.isReported:
		return "files of the system have no dSYM, and the report does not name these frames either; it does after it was opened in Xcode or Console on a Mac that knows this version of the system"
	case isOfMacOS(w.Path):
		return "files of the system have no dSYM: give the file of that system with " + w.option(name)
	}
	var list []string
	if isWalked {
		list = append(list, "the file with "+w.option(name))
	}
	dsym := object.DSYMName(w.Path)
	list = append(list, fmt.Sprintf("its dSYM with --debug-dir %s: it is in the folder dSYMs of the Xcode archive, or `dsymutil` makes it where %s was built", dsym, name))
	if w.Symbols.DebugID != "" && len(w.info.Answers) == 0 {
		list = append(list, "a store of symbols with --symbols URL")
	}
	return "give " + strings.Join(list, ", or ")
}

// codeMaker is a runtime that makes code while it runs.
type codeMaker struct {
	name  string
	files []string // beginnings of the names of its executables and libraries
	how   string   // how it is told to write the names of its code
}

// codeMakers are the runtimes that can write /tmp/perf-PID.map or a jitdump.
var codeMakers = []codeMaker{
	{"Node.js", []string{"node", "libnode."}, "start it with `node --perf-basic-prof`"},
	{"the Java virtual machine", []string{"java", "libjvm.so"}, "run `jcmd PID Compiler.perfmap` (JDK 17 or later) while it lives, or start it with `java -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit`"},
	{".NET", []string{"dotnet", "libcoreclr.so", "libclrjit.so"}, "start it with DOTNET_PerfMapEnabled=1 in its environment"},
	{"Erlang", []string{"beam.smp"}, "start it with `erl +JPperf true`"},
	{"Ruby", []string{"ruby", "libruby"}, "start it with `ruby --yjit --yjit-perf`"},
	{"PHP", []string{"php"}, "start it with opcache.jit_debug=16"},
	{"Julia", []string{"julia", "libjulia"}, "start it with ENABLE_JITPROFILING=1 in its environment"},
	{"Wasmtime", []string{"wasmtime"}, "start it with `wasmtime --profile=perfmap`"},
}

// runtimeOf returns the runtime that has one of the files; nil where none is known.
func runtimeOf(files []string) *codeMaker {
	for i := range codeMakers {
		for _, prefix := range codeMakers[i].files {
			for _, file := range files {
				if isNamed(object.LastPart(file), prefix) {
					return &codeMakers[i]
				}
			}
		}
	}
	return nil
}

// isNamed reports whether the name of a file is a program's or a library's, with or without a
// version.
func isNamed(name, program string) bool {
	rest, ok := strings.CutPrefix(name, program)
	return ok && (rest == "" || strings.HasSuffix(program, ".") || strings.ContainsAny(rest[:1], ".-0123456789") || strings.HasPrefix(program, "lib"))
}

// generatedText is the sentence about code that a runtime made; maker is nil where it is not known.
// where says where its names are used then.
func generatedText(maker *codeMaker, where string) string {
	if maker == nil {
		return "code that the program made while it ran lacks names here: its runtime would have to write /tmp/perf-PID.map or a jitdump, which name it " + where
	}
	return fmt.Sprintf("code that %s made lacks names here: %s, and it is named %s", maker.name, maker.how, where)
}

// HintLine is the last line of a report: the most important hint, and how many there are more; ""
// for none.
func HintLine(hints []Hint) string {
	switch n := len(hints) - 1; {
	case n < 0:
		return ""
	case n > 0:
		return fmt.Sprintf("%s; and %d more (-v)", hints[0].Text, n)
	}
	return hints[0].Text
}

// hintLines are the lines at the end of a report: all hints where that is verbose, else one.
func hintLines(hints []Hint, isVerbose bool) (lines []string) {
	if !isVerbose {
		if line := HintLine(hints); line != "" {
			lines = append(lines, line)
		}
		return lines
	}
	for i := range hints {
		lines = append(lines, hints[i].Text)
	}
	return lines
}
