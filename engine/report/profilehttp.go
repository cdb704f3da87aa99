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
	"time"

	"github.com/google/pprof/driver"
	"github.com/google/pprof/profile"
)

// Serve serves pprof's own views of the profile, below /ui/, until ctx ends. It
// closes the listener. problem is told what pprof has to say.
//
// pprof is given the profile as it is: it looks up no symbols, opens no files but
// the sources that a user asks to see and its own settings, and connects to
// nothing. Its graph needs Graphviz' dot.
func (r *Profile) Serve(ctx context.Context, l net.Listener, problem func(string)) error {
	defer l.Close()
	p := r.pprof()
	ui := &pprofUI{problem}
	return driver.PProf(&driver.Options{
		Flagset: &pprofFlags{
			FlagSet: flag.NewFlagSet("pprof", flag.ContinueOnError),
			args:    []string{"-http=localhost:0", "-no_browser", "-symbolize=none", "profile"},
		},
		Fetch: pprofSource{p}, Sym: pprofSource{p}, Obj: pprofSource{p}, UI: ui, HTTPTransport: pprofSource{p},
		HTTPServer: func(args *driver.HTTPServerArgs) error { return serve(ctx, l, args.Handlers) },
	})
}

// serve serves pprof's pages until ctx ends, and then those that were asked for.
func serve(ctx context.Context, l net.Listener, handlers map[string]http.Handler) error {
	mux := http.NewServeMux()
	for path, h := range handlers {
		if path == "/" {
			path = "/{$}"
		}
		mux.Handle("/ui"+path, http.StripPrefix("/ui", h))
	}
	mux.Handle("/{$}", http.RedirectHandler("/ui/", http.StatusTemporaryRedirect))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
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

// pprofSource is the profile itself, in all the places where pprof would look for
// one or for what belongs to it.
type pprofSource struct{ p *profile.Profile }

// Fetch implements driver.Fetcher. The profile is not from a URL, so pprof keeps
// no copy of it.
func (s pprofSource) Fetch(string, time.Duration, time.Duration) (*profile.Profile, string, error) {
	return s.p, "", nil
}

// Symbolize implements driver.Symbolizer: what is known is there.
func (pprofSource) Symbolize(string, driver.MappingSources, *profile.Profile) error { return nil }

// Open implements driver.ObjTool. The file that is here under a module's path
// need not be the one that was recorded.
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

// pprofUI is told what pprof would print.
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
