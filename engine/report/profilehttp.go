// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/pprof/driver"
	"github.com/google/pprof/profile"

	"github.com/unwindd/unwindd/engine/object"
)

// ServeOptions are the options of Serve.
type ServeOptions struct {
	// Host is the name or address that the listener was told to listen at.
	Host string
	// Sysroot is the directory beneath which sources are read; "" is "/".
	Sysroot string
	// Problem receives pprof's messages.
	Problem func(string)
}

// Serve serves pprof's own views of the profile, below /ui/, until ctx ends. It closes the
// listener.
//
// pprof gets the profile unchanged: it looks up no symbols, opens no files except its own
// settings and the sources that a user opens, which are regular files beneath o.Sysroot, and
// connects to nothing. Its graph needs Graphviz' dot. The pages cannot change anything:
// pprof's saving of settings is left out. Requests by another name than the listener's are
// refused, because a page of another site may have made one that leads here.
func (r *Profile) Serve(ctx context.Context, l net.Listener, o ServeOptions) error {
	defer l.Close()
	shown, root := r.pagesProfile()
	pages, err := pprofPages(shown, root, o.Problem)
	if err != nil {
		return err
	}
	pages["/source"] = r.sourcePage(o)
	pages["/flamegraph"] = flameGraphPage(pages["/flamegraph"])
	pages["/download"] = http.HandlerFunc(r.downloadPage)
	delete(pages, "/saveconfig")
	delete(pages, "/deleteconfig")
	mux := http.NewServeMux()
	for path, h := range pages {
		if path == "/" {
			path = "/{$}"
		}
		mux.Handle("/ui"+path, http.StripPrefix("/ui", h))
	}
	mux.Handle("/{$}", http.RedirectHandler("/ui/", http.StatusTemporaryRedirect))
	return serve(ctx, l, guarded(mux, o.Host))
}

// pprofPages are pprof's pages of a profile, by their paths. Where root is not "" each value
// of that label has a tree of its own.
func pprofPages(p *profile.Profile, root string, problem func(string)) (pages map[string]http.Handler, err error) {
	err = driver.PProf(&driver.Options{
		Flagset: &pprofFlags{
			FlagSet: flag.NewFlagSet("pprof", flag.ContinueOnError),
			// With a prefix to trim, pprof does not guess where else a path may be.
			args: []string{"-http=localhost:0", "-no_browser", "-symbolize=none", "-tagroot=" + root, "-trim_path=/" + noPath, "profile"},
		},
		Fetch: pprofSource{p}, Sym: pprofSource{p}, Obj: pprofSource{p}, UI: &pprofUI{problem}, HTTPTransport: pprofSource{p},
		HTTPServer: func(args *driver.HTTPServerArgs) error {
			pages = args.Handlers
			return nil
		},
	})
	return pages, err
}

// sourcePage is pprof's page of sources, made on its first request. pprof opens any path that
// a function has, so its profile has the paths of files that may be read, and for others
// paths that cannot be opened.
func (r *Profile) sourcePage(o ServeOptions) http.Handler {
	page := sync.OnceValues(func() (http.Handler, error) {
		p, root := r.pagesProfile()
		for _, f := range p.Function {
			f.Filename = readableSource(o.Sysroot, f.Filename)
		}
		pages, err := pprofPages(p, root, o.Problem)
		return pages["/source"], err
	})
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		h, err := page()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		h.ServeHTTP(&sourceWriter{w}, request)
	})
}

// noPath is in no path of a file. A page has \uFFFD in its place.
const noPath = "\x00"

// maxSource bounds the bytes of a source file that a page shows.
const maxSource = 64 << 20

// readableSource is the path of a source file on this machine; with noPath at its end where
// it is not a file that may be read.
func readableSource(sysroot, name string) string {
	if name == "" {
		return ""
	}
	path, size, err := object.Locate(sysroot, name)
	if err != nil || size > maxSource {
		return name + noPath
	}
	return path
}

// serve serves until ctx ends, and then finishes open requests.
func serve(ctx context.Context, l net.Listener, h http.Handler) error {
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	err := server.Shutdown(grace)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	if stopped := <-done; !errors.Is(stopped, http.ErrServerClosed) {
		err = errors.Join(err, stopped)
	}
	return err
}

// pprofSource is the profile itself, for every interface by which pprof would look for it or
// for its files.
type pprofSource struct{ p *profile.Profile }

// Fetch implements driver.Fetcher. The profile is not from a URL, so pprof keeps
// no copy of it.
func (s pprofSource) Fetch(string, time.Duration, time.Duration) (*profile.Profile, string, error) {
	return s.p, "", nil
}

// Symbolize implements driver.Symbolizer: all known names are there.
func (pprofSource) Symbolize(string, driver.MappingSources, *profile.Profile) error { return nil }

// Open implements driver.ObjTool. The file under a module's path here need not be the
// recorded one.
func (pprofSource) Open(file string, _, _, _ uint64, _ string) (driver.ObjFile, error) {
	return nil, fmt.Errorf("%s is not opened", file)
}

// Disasm implements driver.ObjTool.
func (pprofSource) Disasm(file string, _, _ uint64, _ bool) ([]driver.Inst, error) {
	return nil, fmt.Errorf("%s is not disassembled", file)
}

// RoundTrip implements http.RoundTripper.
func (pprofSource) RoundTrip(request *http.Request) (*http.Response, error) {
	return nil, fmt.Errorf("%s is not connected to", request.URL.Host)
}

// pprofFlags is pprof's command line.
type pprofFlags struct {
	*flag.FlagSet
	args []string
}

// StringList implements driver.FlagSet.
func (f *pprofFlags) StringList(name, value, usage string) *[]*string {
	return &[]*string{f.String(name, value, usage)}
}

// ExtraUsage implements driver.FlagSet.
func (*pprofFlags) ExtraUsage() string { return "" }

// AddExtraUsage implements driver.FlagSet.
func (*pprofFlags) AddExtraUsage(string) {}

// Parse implements driver.FlagSet.
func (f *pprofFlags) Parse(func()) []string {
	if err := f.FlagSet.Parse(f.args); err != nil {
		return nil
	}
	return f.Args()
}

// pprofUI receives pprof's output.
type pprofUI struct{ problem func(string) }

// ReadLine implements driver.UI.
func (*pprofUI) ReadLine(string) (string, error) { return "", io.EOF }

// Print implements driver.UI.
func (*pprofUI) Print(...any) {}

// PrintErr implements driver.UI.
func (u *pprofUI) PrintErr(args ...any) { u.problem(strings.TrimSpace(fmt.Sprint(args...))) }

// IsTerminal implements driver.UI.
func (*pprofUI) IsTerminal() bool { return false }

// WantBrowser implements driver.UI.
func (*pprofUI) WantBrowser() bool { return false }

// SetAutoComplete implements driver.UI.
func (*pprofUI) SetAutoComplete(func(string) string) {}
