// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// rocprofv3InPlace runs the program behind `--`, and writes what that says of its
// launches, without their stacks, as a file of samples: one for each launch.
const rocprofv3InPlace = `#!/bin/sh
while [ "$1" != -- ]; do
	case $1 in
	-d) directory=$2 ;;
	-o) name=$2 ;;
	esac
	shift
done
shift
file=$directory/${name}_results.json
echo '{"record":"format","format_version":1,"clock":"CLOCK_BOOTTIME"}' >"$file"
echo '{"record":"module","id":1,"path":"'"$GRADE"'","arch":"amdgpu"}' >>"$file"
"$@" | sed 's/"frames":\[[^]]*\]/"frames":[]/' >>"$file"
sed -n 's/^{"record":"launch","id":\([0-9]*\),.*/{"record":"sample","module":1,"module_offset":"0x16c4","exec_mask":"0xff","lanes":64,"wave":{"kernel":"grade"},"launched_by":{"launch":\1}}/p' "$file" >"$file.samples"
cat "$file.samples" >>"$file"
`

// TestTheScriptRecordsLaunches runs the script of the example, with a program whose
// launching function is its own, and with a stand-in for rocprofv3.
func TestTheScriptRecordsLaunches(t *testing.T) {
	long(t)
	oracle.Tools(t, "perf")
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin, out := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		"rocprofv3": rocprofv3InPlace, "unwindd": "#!/bin/sh\nexec " + self + " \"$@\" --event gpu-pc-sampling\n",
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	host := filepath.Join(root, "examples/gpu-profile/host")
	text := oracle.With{Env: []string{
		"PATH=" + bin + ":" + os.Getenv("PATH"), "NO_COLOR=1", "HIP_LIBRARY=" + host, "GRADE=" + filepath.Join(root, "examples/gpu-profile/grade.co"), "XDG_CACHE_HOME=" + cacheDir,
	}}.Run(t, "sh", filepath.Join(root, "examples/gpu-profile/record.sh"), out, host)
	for _, want := range []string{": gpu-pc-sampling, 10 samples, 10\n", "├ grade_all ", "└ grade_again ", "hipLaunchKernel ", " grade "} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "[launched near]") {
		t.Errorf("a launch was not found by its probe:\n%s", text)
	}
	if left := oracle.Run(t, "perf", "probe", "-l"); strings.Contains(left, "probe_launch") {
		t.Errorf("probes are left:\n%s", left)
	}
}
