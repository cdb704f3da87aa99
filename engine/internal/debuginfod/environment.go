// SPDX-License-Identifier: Apache-2.0

package debuginfod

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/unwindd/unwindd/engine/internal/download"
	"github.com/unwindd/unwindd/internal/host"
)

// FromEnvironment returns the Options that environment variables set
// (debuginfod-client-config(7)); getenv reads a variable. DEBUGINFOD_URLS has the servers,
// separated by blanks. The error joins the errors of invalid servers, which the Options lack.
func FromEnvironment(getenv func(string) string) (Options, error) {
	o := Options{
		Timeout: seconds(getenv("DEBUGINFOD_TIMEOUT"), DefaultTimeout),
		MaxTime: seconds(getenv("DEBUGINFOD_MAXTIME"), 0),
		MaxSize: max(number(getenv("DEBUGINFOD_MAXSIZE"), 0), 0),
		Retries: int(min(max(number(getenv("DEBUGINFOD_RETRY_LIMIT"), DefaultRetries), 0), 100)),
		Cache:   cacheDir(getenv),
	}
	var wrong []error
	isSigned := false
	for _, word := range strings.Fields(getenv("DEBUGINFOD_URLS")) {
		if policy, ok := strings.CutPrefix(word, "ima:"); ok {
			isSigned = policy == "enforcing"
			continue
		}
		u, err := ParseURL(word)
		if err == nil && isSigned {
			err = fmt.Errorf("%s is not asked: signatures (ima:enforcing) are not checked here", u.Redacted())
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("DEBUGINFOD_URLS: %w", err))
			continue
		}
		o.URLs = append(o.URLs, u)
	}
	if file := getenv("DEBUGINFOD_HEADERS_FILE"); file != "" && len(o.URLs) > 0 {
		var err error
		if o.Headers, err = readHeaders(file); err != nil {
			wrong = append(wrong, fmt.Errorf("DEBUGINFOD_HEADERS_FILE: %w", err))
		}
	}
	return o, errors.Join(wrong...)
}

// ParseURL reads the URL of a server: http, https or file; without a scheme it is http.
func ParseURL(text string) (*url.URL, error) {
	original := text
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("the URL of a server cannot be read: " + download.WithoutURL(err).Error())
	case u.Scheme == "file" && (u.Host == "" || u.Host == "localhost") && strings.HasPrefix(u.Path, "/"):
	case (u.Scheme == "http" || u.Scheme == "https") && u.Host != "":
	default:
		return nil, fmt.Errorf("%s: expected http://HOST, https://HOST or file:///DIRECTORY", original)
	}
	u.RawQuery, u.Fragment, u.RawFragment, u.ForceQuery = "", "", "", false
	return u, nil
}

// seconds reads a number of seconds; 0 or less stands for no bound.
func seconds(text string, usual time.Duration) time.Duration {
	if text == "" {
		return usual
	}
	return max(download.ParseSeconds(text, usual), 0)
}

// number reads the number at the start of a text.
func number(text string, usual int64) int64 {
	text = strings.TrimSpace(text)
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	return usual
}

// cacheDir returns the directory of the cache: that of DEBUGINFOD_CACHE_PATH, or the directory in
// HOME that old clients used if it exists, or else that beneath XDG_CACHE_HOME.
func cacheDir(getenv func(string) string) string {
	if dir := getenv("DEBUGINFOD_CACHE_PATH"); dir != "" {
		return dir
	}
	if home := getenv("HOME"); home != "" {
		old := filepath.Join(home, ".debuginfod_client_cache")
		if _, err := os.Stat(old); err == nil {
			return old
		}
	}
	base := host.CacheDir(getenv)
	if base == "" {
		return ""
	}
	return filepath.Join(base, "debuginfod_client")
}

// maxHeadersFile bounds a file of headers, in bytes.
const maxHeadersFile = 64 << 10

func readHeaders(file string) (http.Header, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return parseHeaders(io.LimitReader(f, maxHeadersFile)), nil
}

// parseHeaders reads a header from each line. Invalid lines are left out, and so are headers
// that would change how the request is sent.
func parseHeaders(r io.Reader) http.Header {
	h := http.Header{}
	for lines := bufio.NewScanner(r); lines.Scan(); {
		name, value, ok := strings.Cut(strings.TrimRight(lines.Text(), " \t\r"), ":")
		value = strings.Trim(value, " \t")
		if !ok || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) || value == "" {
			continue
		}
		switch name = http.CanonicalHeaderKey(name); name {
		case "Host", "Content-Length", "Transfer-Encoding", "Connection", "Accept-Encoding", "Range", "Trailer", "Upgrade", "Te":
		default:
			h.Add(name, value)
		}
	}
	return h
}
