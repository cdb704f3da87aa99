// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/enginetest"
)

// TestDownloadsOfAnEngine has an engine ask a server, whose answer is no code object.
func TestDownloadsOfAnEngine(t *testing.T) {
	var paths []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paths = append(paths, r.URL.Path)
		_, _ = w.Write([]byte("no code object"))
	}))
	defer server.Close()
	var transfers []engine.Transfer
	cache := t.TempDir()
	d, err := engine.EnvironmentDownloads(func(name string) string {
		return map[string]string{"DEBUGINFOD_URLS": server.URL, "DEBUGINFOD_CACHE_PATH": cache}[name]
	})
	if err != nil {
		t.Fatal(err)
	}
	d.Progress = func(one engine.Transfer) { transfers = append(transfers, one) }
	finder := enginetest.Engine(t, engine.Options{Downloads: d}).Finder("")
	o, tried := finder.FetchDebug([]byte{0xab, 0xcd, 0xef})
	if o != nil || len(tried) != 1 || tried[0].Kind != object.Unreadable || !strings.Contains(tried[0].Reason, "no code object") {
		t.Errorf("%v, %+v", o, tried)
	}
	if len(paths) != 1 || paths[0] != "/buildid/abcdef/debuginfo" {
		t.Errorf("%q", paths)
	}
	if n := len(transfers); n < 2 || transfers[0].File != "debuginfo of abcdef" || !transfers[n-1].Done {
		t.Errorf("%+v", transfers)
	}
}

func TestServersThatCannotBeAsked(t *testing.T) {
	for _, c := range []struct {
		downloads engine.Downloads
		isStore   bool
	}{
		{engine.Downloads{Debuginfod: engine.Servers{URLs: []string{"ftp://host"}}}, false},
		{engine.Downloads{Stores: engine.Servers{URLs: []string{"/no/such/folder"}}}, true},
	} {
		_, err := engine.New(engine.Options{Downloads: c.downloads})
		var e *engine.ServerError
		if !errors.As(err, &e) || e.IsStore != c.isStore {
			t.Errorf("%+v: %v", c.downloads, err)
		}
	}
	if _, err := engine.EnvironmentDownloads(func(string) string { return "ftp://host" }); err == nil {
		t.Error("an invalid server of the environment is no error")
	}
}
