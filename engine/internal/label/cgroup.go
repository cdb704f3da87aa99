// SPDX-License-Identifier: Apache-2.0

package label

import (
	"strings"

	"github.com/unwindd/unwindd/internal/ondemand"
)

// The names that the parts of a cgroup's path have: a pod's UID is "pod" and a UUID, whose hyphens systemd's
// driver writes as underscores (kubelet, pkg/kubelet/cm); a container's ID has 64 hexadecimal digits behind a
// prefix of its engine ("cri-containerd-", "docker-", "crio-", "libpod-").
var (
	podName       = ondemand.Regexp(`(?:^|[/-])pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12})(?:\.slice)?(?:$|/)`)
	containerName = ondemand.Regexp(`(?:^|[/:-])([0-9a-f]{64})(?:\.scope)?(?:$|/)`)
)

// inCgroup finds the UID of a pod and the ID of a container in the lines of /proc/PID/cgroup. Of nested
// containers the innermost counts.
func inCgroup(text string) (pod, container string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if m := podName().FindStringSubmatch(line); m != nil && pod == "" {
			pod = strings.ReplaceAll(m[1], "_", "-")
		}
		parts := strings.Split(line, "/")
		for i := len(parts) - 1; i >= 0 && container == ""; i-- {
			if m := containerName().FindStringSubmatch(parts[i]); m != nil {
				container = m[1][:12]
			}
		}
	}
	return pod, container
}
