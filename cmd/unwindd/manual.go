// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/unwindd/unwindd/internal/manual"
	"github.com/unwindd/unwindd/internal/version"
)

// book has the sections that the manual pages of all commands share.
var book = manual.Book{
	Home: "https://github.com/unwindd/unwindd/tree/main/docs",
	Status: []manual.Entry{
		{Name: "0", Text: "All was done. A stack that is cut short is not a failure."},
		{Name: "1", Text: "An input could not be read, the output could not be written, or an expression could not be evaluated."},
		{Name: "2", Text: "The command line is wrong."},
		{Name: "3", Text: "The input was read, but nothing in it could be walked for lack of an architecture."},
		{Name: "4", Text: "With --fail-on-crash, a thread of a target crashed. With --fail-if-differ, targets differ."},
		{Name: "130, 143", Text: "SIGINT or SIGTERM ended the command. Output that was not whole was removed. The first SIGINT while a program or a living process is recorded ends the recording, and its profile is written."},
		{Name: "126, 127", Text: "The program of 'unwindd profile -- PROGRAM' cannot be executed, or there is none."},
	},
	Environment: []manual.Entry{
		{Name: "UNWINDD_CONFIG", Text: "The configuration file, where --config names none; empty, none is read.", Flag: "config"},
		{Name: "UNWINDD_PLUGIN_DIR", Text: "Directories of plugins, separated by colons, beside those of --plugin-dir.", Flag: "plugin-dir"},
		{Name: "UNWINDD_REATTACH_PLUGINS", Text: "Processes of plugins that run in debuggers, as those print it: they are used as they are, unconfined, in place of those that would be started.", Flag: "plugin-dir"},
		{Name: "UNWINDD_SYMBOLS", Text: "Stores of symbol files, separated by blanks, where --symbols names none.", Flag: "symbols"},
		{Name: "UNWINDD_SERVER", Text: "The server that does the work of stack, profile, compare, snapshot and symbolize, where --server names none.", Flag: "server"},
		{Name: "UNWINDD_TOKEN", Text: "The token that is shown to the server.", Flag: "server"},
		{Name: "UNWINDD_QUEUE", Text: "The queue of the fleet, where --queue names none.", Flag: "queue"},
		{Name: "SSL_CERT_FILE, SSL_CERT_DIR", Text: "Certificates of authorities that the server's may be signed by, in the place of the system's.", Flag: "server"},
		{Name: "DEBUGINFOD_URLS", Text: "Debuginfod servers, separated by blanks, where --debuginfod names none.", Flag: "debuginfod"},
		{Name: "DEBUGINFOD_CACHE_PATH", Text: "The directory of files that debuginfod servers gave.", Flag: "debuginfod"},
		{Name: "DEBUGINFOD_TIMEOUT, DEBUGINFOD_MAXTIME, DEBUGINFOD_MAXSIZE, DEBUGINFOD_RETRY_LIMIT, DEBUGINFOD_HEADERS_FILE, DEBUGINFOD_PROGRESS",
			Text: "What other clients of debuginfod take them for.", Flag: "debuginfod"},
		{Name: "HTTPS_PROXY, HTTP_PROXY, NO_PROXY", Text: "Proxies for requests to servers of files, stores of symbol files and collectors, as for other programs.", Flag: "debuginfod"},
		{Name: "OTEL_EXPORTER_OTLP_PROFILES_HEADERS, OTEL_EXPORTER_OTLP_HEADERS", Text: "Headers of requests to the collector of --otlp. The first that is set is taken.", Flag: "otlp"},
		{Name: "LLVM_SYMBOLIZER_OPTS, LLVM_ADDR2LINE_OPTS", Text: "Options of the executable under the names llvm-symbolizer and llvm-addr2line.", Flag: "output-style"},
		{Name: "PERF_BUILDID_DIR, PERF_CONFIG", Text: "The cache of files by build ID of perf, and its settings, which may name the cache.", Flag: "buildid-dir"},
		{Name: "WINEPREFIX", Text: "The directory of Wine, instead of ~/.wine, whose drives files of minidumps are looked for in without --sysroot.", Flag: "sysroot"},
		{Name: "TMPDIR", Text: "Where packed targets are unpacked to, and where sockets of plugins are, instead of /var/tmp and /tmp."},
		{Name: "XDG_STATE_HOME", Text: "Where a server keeps the objects that are put.", Flag: "state"},
		{Name: "LISTEN_FDS, LISTEN_PID", Text: "The sockets that systemd has opened for a server.", Flag: "listen"},
		{Name: "NOTIFY_SOCKET", Text: "Where a server tells systemd what it does.", Flag: "listen"},
		{Name: "OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL, OTEL_TRACES_EXPORTER, OTEL_SDK_DISABLED",
			Text: "Where a server sends traces to, how, and whether it does, as for other programs with OpenTelemetry.", Flag: "listen"},
		{Name: "XDG_CONFIG_HOME", Text: "Where unwindd/config.toml is looked for, instead of ~/.config."},
		{Name: "XDG_RUNTIME_DIR", Text: "Where sockets of plugins are if the path of TMPDIR is too long for them."},
		{Name: "XDG_CACHE_HOME", Text: "Where files are kept that can be made or fetched again, instead of ~/.cache."},
		{Name: "NO_COLOR, TERM", Text: "Terminals are not written to in colour where NO_COLOR is set and not empty, or TERM is dumb, unless --color says so."},
		{Name: "GOGC", Text: "How often garbage is collected, as in other programs in Go."},
	},
	Files: []manual.Entry{
		{Name: "~/.config/unwindd/config.toml, /etc/unwindd/config.toml", Text: "Settings. The first that is there is read."},
		{Name: "/usr/lib/debug", Text: "Separate debug files, by build ID or by path; also under --sysroot.", Flag: "debug-dir"},
		{Name: "~/.debug", Text: "Copies of files that perf sampled, by build ID; buildid.dir in ~/.perfconfig or /etc/perfconfig names another directory.", Flag: "buildid-dir"},
		{Name: "~/.cache/unwindd/symbols", Text: "Symbol files that stores gave.", Flag: "symbols"},
		{Name: "~/.cache/debuginfod_client", Text: "Files that debuginfod servers gave, for other clients too.", Flag: "debuginfod"},
		{Name: "~/.cache/unwindd/plugins", Text: "What vendors' plugins say of themselves.", Flag: "plugin-dir"},
	},
	SeeAlso: map[string][]string{
		"unwindd":           {"gdb(1)", "core(5)"},
		"unwindd stack":     {"gdb(1)", "gcore(1)", "coredumpctl(1)", "core(5)"},
		"unwindd profile":   {"perf-record(1)"},
		"unwindd collect":   {"gcore(1)", "srun(1)", "mpirun(1)"},
		"unwindd snapshot":  {"gcore(1)", "core(5)"},
		"unwindd symbolize": {"addr2line(1)", "llvm-symbolizer(1)"},
		"unwindd dump":      {"readelf(1)"},
		"unwindd dump cfi":  {"readelf(1)"},
	},
}

// newManual makes a hidden command for packagers.
func newManual() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write the manual pages of all commands into a directory",
		Hidden: true,
		Args:   usageArgs(cobra.ExactArgs(1)),
		RunE:   func(cmd *cobra.Command, args []string) error { return writeManual(cmd.Root(), args[0]) },
	}
}

// writeManual writes the pages. Their date is the commit's, or SOURCE_DATE_EPOCH.
func writeManual(root *cobra.Command, dir string) error {
	build := version.Read()
	b := book
	b.Groups = groupsOf
	b.Version = build.Version
	b.Date, _ = time.Parse(time.RFC3339, build.CommitTime)
	if text := os.Getenv("SOURCE_DATE_EPOCH"); text != "" {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return usageError{fmt.Errorf("SOURCE_DATE_EPOCH=%s: expected seconds since 1970", text)}
		}
		b.Date = time.Unix(seconds, 0)
	}
	for _, cmd := range manual.Commands(root) {
		write := func(w io.Writer) error { return b.WritePage(w, cmd) }
		if err := writeFile(filepath.Join(dir, manual.Name(cmd)+".1"), write); err != nil {
			return err
		}
	}
	return nil
}

// writeFile writes a file as commands write their output.
func writeFile(path string, write func(io.Writer) error) error {
	o, err := createOutput(path, false)
	if err != nil {
		return err
	}
	defer func() { _ = o.abandon() }()
	return o.finish(write(o))
}
