/* Without threads locks cost nothing and exist nevertheless. */
#include "every.h"

#if GASNETT_THREAD_SAFE || !GASNETT_THREAD_SINGLE
#error the mode
#endif

GASNETT_THREADKEY_DEFINE(key);

int main(void)
{
    gasnett_mutex_t mutex = GASNETT_MUTEX_INITIALIZER;
    gasnett_cond_t cond = GASNETT_COND_INITIALIZER;
    gasnett_rwlock_t rwlock = GASNETT_RWLOCK_INITIALIZER;
    CHECK(gasnett_threadkey_get(key) == NULL);
    gasnett_threadkey_set(key, &mutex);
    CHECK(gasnett_threadkey_get(key) == &mutex);
    gasnett_mutex_lock(&mutex);
    CHECK(gasnett_mutex_trylock(&mutex) == 0);
    gasnett_mutex_unlock(&mutex);
    gasnett_mutex_assertlocked(&mutex);
    gasnett_mutex_assertunlocked(&mutex);
    gasnett_cond_signal(&cond);
    gasnett_cond_broadcast(&cond);
    gasnett_rwlock_wrlock(&rwlock);
    gasnett_rwlock_rdlock(&rwlock);
    CHECK(gasnett_rwlock_tryrdlock(&rwlock) == 0 && gasnett_rwlock_trywrlock(&rwlock) == 0);
    gasnett_rwlock_assertwrlocked(&rwlock);
    gasnett_rwlock_unlock(&rwlock);
    gasnett_rwlock_destroy(&rwlock);
    gasnett_mutex_destroy(&mutex);
    gasnett_cond_destroy(&cond);
    return 0;
}
