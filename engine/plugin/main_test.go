// SPDX-License-Identifier: Apache-2.0

//go:build linux

package plugin

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/internal/confine"
	"github.com/unwindd/unwindd/internal/confine/confinetest"
	"github.com/unwindd/unwindd/sdk"
)

// The test binary is its own plugin: as `unwindd plugin exec|serve` where it is
// Options.Self, and as a vendor's executable where it is copied to
// unwindd-arch-NAME.
func TestMain(m *testing.M) {
	confinetest.Main()
	switch k, name := kindOf(filepath.Base(os.Args[0])); k {
	case architectures:
		sdk.Serve(newTestArch(vendorMode(name)))
		return
	case runtimes:
		sdk.ServeRuntime(&testRuntime{name: name})
		return
	}
	if len(os.Args) > 2 && os.Args[1] == "plugin" {
		err := fmt.Errorf("no such command: %q", os.Args[2])
		switch os.Args[2] {
		case "exec":
			err = confine.ExecMain(os.Args[3:])
		case "serve":
			err = confine.ServeMain(os.Args[3:], testBundled(), nil)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		// Never the tests: one that starts this binary would start itself.
		switch os.Args[1] {
		case "parent":
			parentMain(os.Args[2])
		case "try":
			tryMain(os.Args[2])
			return
		case "problems":
			problemsMain(os.Args[2])
			return
		}
		fmt.Fprintf(os.Stderr, "no such command: %q\n", os.Args[1])
		os.Exit(2)
	}
	syscall.Umask(0o022) // plugins that others may write to are refused
	// Keep the user's cache out of it.
	dir, err := os.MkdirTemp("", "cache-")
	if err != nil {
		panic(err)
	}
	os.Setenv("XDG_CACHE_HOME", dir)
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// A mode is how a test plugin behaves.
type mode string

const (
	good            mode = "good"
	other           mode = "other"            // good, and recognises another machine
	exits           mode = "exits"            // exits at once
	hangs           mode = "hangs"            // before the handshake
	garbage         mode = "garbage"          // for a handshake
	silent          mode = "silent"           // closes its output, lives on
	shakesAndHangs  mode = "shakes-and-hangs" // listens and says so, but never answers
	wrongSocket     mode = "wrong-socket"     // says it listens somewhere else
	wrongNetwork    mode = "wrong-network"
	olderVersion    mode = "older-version" // of the protocol
	newerVersion    mode = "newer-version"
	wrongSelf       mode = "wrong-description" // than the one compiled in
	badSelf         mode = "bad-description"   // that is not valid
	hangsDescribing mode = "hangs-describing"
	diesDescribing  mode = "dies-describing"
	noisy           mode = "noisy"        // on standard error
	byGoPlugin      mode = "by-go-plugin" // go-plugin serves it
	alone           mode = "alone"        // says that it asks nothing of the engine
)

var allModes = []mode{good, other, exits, hangs, garbage, silent, shakesAndHangs, wrongSocket, wrongNetwork, olderVersion, newerVersion,
	wrongSelf, badSelf, hangsDescribing, diesDescribing, noisy, byGoPlugin, alone}

func testBundled() []confine.Bundled {
	var b []confine.Bundled
	for _, m := range allModes {
		b = append(b, confine.Bundled{Name: string(m), New: func() sdk.Architecture { return newTestArch(m) }, Description: func() *sdk.Description { return testDescription(m) }})
	}
	return b
}

func bundledTest(m mode) []confine.Bundled {
	for _, b := range testBundled() {
		if b.Name == string(m) {
			return []confine.Bundled{b}
		}
	}
	panic(m)
}

const testMachine = 0x7e57

func testDescription(m mode) *sdk.Description {
	machine := uint16(testMachine)
	if m == other {
		machine++
	}
	return &sdk.Description{
		Name: "test-" + string(m), Version: "1.0",
		Recognises:  []sdk.Recogniser{{ELFMachine: machine, OSABI: -1}, {NoteOwner: "TEST"}},
		AddressBits: 64,
		Registers: []sdk.RegisterRange{
			{First: 0, Count: 8, Names: []string{"r%d"}, Bits: 64},
			{First: 8, Count: 2, Names: []string{"sp", "pc"}, Bits: 64},
		},
		PC: 9, SP: 8, FP: 7, ReturnAddress: 9,
		AddressSpaces: []sdk.AddressSpace{{Number: 0, Name: "global", Bits: 64}},
		DefaultRules:  []cfi.RegisterRule{{Column: 0, Rule: cfi.Rule{Kind: cfi.SameValue}}},
		CallDistance:  1, MaxInstruction: 4, StackAlign: 8, NoEngine: m == alone,
	}
}

// vendorMode is the mode of a vendor's executable: its name up to a plus sign.
func vendorMode(name string) mode {
	name, _, _ = strings.Cut(name, "+")
	return mode(name)
}

// A testArch does what its requests say.
type testArch struct {
	sdk.Base
	mode mode
}

func newTestArch(m mode) sdk.Architecture {
	handshake := func(network, address string) {
		fmt.Printf("1|%d|%s|%s|grpc|\n", sdk.ProtocolVersion, network, address)
		time.Sleep(time.Hour)
	}
	switch m {
	case exits:
		fmt.Fprintln(os.Stderr, "libvendor.so.7 is \x1b[31mmissing")
		os.Exit(3)
	case hangs:
		time.Sleep(time.Hour)
	case garbage:
		fmt.Println("Welcome to the \x1b[1mvendor's\x1b[0m plugin")
		time.Sleep(time.Hour)
	case silent:
		os.Stdout.Close()
		time.Sleep(time.Hour)
	case shakesAndHangs:
		path := filepath.Join(os.Getenv("PLUGIN_UNIX_SOCKET_DIR"), "s")
		fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
		if err == nil {
			err = syscall.Bind(fd, &syscall.SockaddrUnix{Name: path})
		}
		if err == nil {
			err = syscall.Listen(fd, 8)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Printf("1|%d|unix|%s|grpc\n", sdk.ProtocolVersion, path)
		time.Sleep(time.Hour)
	case byGoPlugin:
		serveByGoPlugin()
		os.Exit(0)
	case wrongSocket:
		handshake("unix", "/run/dbus/system_bus_socket")
	case wrongNetwork:
		handshake("tcp", "127.0.0.1:22")
	case olderVersion, newerVersion:
		version := sdk.ProtocolVersion - 1
		if m == newerVersion {
			version += 2
		}
		fmt.Printf("1|%d|unix|%s|grpc|\n", version, "x")
		time.Sleep(time.Hour)
	}
	return &testArch{mode: m}
}

func (a *testArch) Describe(context.Context) (*sdk.Description, error) {
	d := testDescription(a.mode)
	switch a.mode {
	case wrongSelf:
		d.Registers[1].Bits = 32
	case badSelf:
		d.PC = 1000
	case hangsDescribing:
		select {}
	case diesDescribing:
		os.Exit(4)
	case noisy:
		for range 10000 {
			fmt.Fprintln(os.Stderr, strings.Repeat("noise ", 1000))
		}
	}
	return d, nil
}

// Disassemble obeys: the request's Processor is a command of commands, the
// answer's text is what came of it.
func (a *testArch) Disassemble(ctx context.Context, req *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) {
	name, argument, _ := strings.Cut(req.Processor, " ")
	command, ok := commands[name]
	if !ok {
		return nil, fmt.Errorf("no command %q", name)
	}
	return command(argument, req)
}

// FrameRules and ClassifyReturn answer what the function's name, or the number
// of addresses, orders.
func (a *testArch) FrameRules(ctx context.Context, e sdk.Engine, req *sdk.FrameRulesRequest) (*sdk.FrameRulesAnswer, error) {
	answer := &sdk.FrameRulesAnswer{}
	for _, f := range req.Functions {
		row := cfi.Row{
			Start: f.Start, End: f.Start + uint64(len(f.Code)),
			CFA:           cfi.CFARule{Kind: cfi.CFARegister, Register: 8, Offset: 16},
			Rules:         []cfi.RegisterRule{{Column: 9, Rule: cfi.Rule{Kind: cfi.Offset, Offset: -8}}},
			ReturnAddress: 9,
		}
		rows := []cfi.Row{row}
		switch f.Name {
		case "unknown register":
			rows[0].CFA.Register = 77
		case "unknown column":
			rows[0].Rules[0].Column = 77
		case "outside":
			rows[0].End++
		case "backwards":
			rows[0].Start, rows[0].End = rows[0].End, rows[0].Start
		case "overlapping":
			rows = append(rows, row)
		case "bad expression":
			rows[0].Rules[0].Rule = cfi.Rule{Kind: cfi.Expression, Expr: []byte{0xff, 0xff, 0xff}}
		case "too many":
			answer.Functions = append(answer.Functions, sdk.FrameRules{})
		case "too few":
			continue
		case "memory":
			b := make([]byte, 4)
			n, err := e.ReadMemory(ctx, sdk.MemoryRange{Address: 0x5000}, b)
			if err != nil {
				return nil, err
			}
			answer.Functions = append(answer.Functions, sdk.FrameRules{Reason: fmt.Sprintf("%d bytes: %s", n, b)})
			continue
		}
		answer.Functions = append(answer.Functions, sdk.FrameRules{Rows: rows})
	}
	return answer, nil
}

// order makes a request that orders a command.
func order(command string) *sdk.DisassembleRequest {
	return &sdk.DisassembleRequest{Address: 0x1000, Code: []byte{1, 2, 3, 4}, Processor: command}
}

func said(text string, req *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) {
	return &sdk.DisassembleAnswer{Instructions: []sdk.Instruction{{Address: req.Address, Size: 1, Text: text}}}, nil
}

// obey orders a command and returns what came of it.
func obey(t *testing.T, a *Arch, command string) (string, error) {
	t.Helper()
	answer, err := a.Disassemble(t.Context(), order(command))
	if err != nil {
		return "", err
	}
	return answer.Instructions[0].Text, nil
}

// tryMain prints what comes of a command in this process.
func tryMain(command string) {
	name, argument, _ := strings.Cut(command, " ")
	answer, err := commands[name](argument, order(command))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(answer.Instructions[0].Text)
}

// self is the test binary.
func self(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// copyOfSelf is another executable than the test binary, with the same in it: one
// that is asked what it is.
func copyOfSelf(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(self(t))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "unwindd")
	if err := os.WriteFile(path, b, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// manager makes a Manager that is closed with the test.
func manager(t *testing.T, o Options) *Manager {
	t.Helper()
	if o.Self == "" {
		o.Self = self(t)
	}
	// A loaded machine takes its time; what is tested is not how long.
	if o.StartDeadline == 0 {
		o.StartDeadline = time.Minute
	}
	if o.CallDeadline == 0 {
		o.CallDeadline = 30 * time.Second
	}
	m, err := NewManager(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// testArchOf is the bundled architecture of a mode, as a process.
func testArchOf(t *testing.T, md mode, o Options) *Arch {
	t.Helper()
	o.Bundled = bundledTest(md)
	a, err := manager(t, o).Find("test-" + string(md))
	if err != nil {
		t.Fatal(err)
	}
	return a
}
