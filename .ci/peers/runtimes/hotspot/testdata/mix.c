/* SPDX-License-Identifier: Apache-2.0 */
#include <jni.h>

/* Calls a Runnable. */
JNIEXPORT void JNICALL Java_Mix_call(JNIEnv *env, jclass own, jobject r) {
	jclass c = (*env)->GetObjectClass(env, r);
	(*env)->CallVoidMethod(env, r, (*env)->GetMethodID(env, c, "run", "()V"));
	(void)own;
}

JNIEXPORT void JNICALL Java_Mix_crash(JNIEnv *env, jclass own) {
	*(volatile int *)0 = 1;
	(void)env, (void)own;
}
