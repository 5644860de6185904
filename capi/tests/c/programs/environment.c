/* Variables of the environment: good values. */
#include "every.h"

static int64_t number(const char *value, int64_t otherwise, uint64_t unit)
{
    gasnett_setenv("ARGONET_C_NUMBER", value);
    return gasnett_getenv_int_withdefault("ARGONET_C_NUMBER", otherwise, unit);
}

static double decimal(const char *value)
{
    gasnett_setenv("ARGONET_C_DECIMAL", value);
    return gasnett_getenv_dbl_withdefault("ARGONET_C_DECIMAL", -1);
}

static int yes(const char *value, int otherwise)
{
    gasnett_setenv("ARGONET_C_YES", value);
    return gasnett_getenv_yesno_withdefault("ARGONET_C_YES", otherwise);
}

int main(void)
{
    static const char *const yeses[] = {"Y", "YES", "y", "yes", "1"}, *const noes[] = {"N", "NO", "n", "no", "0"};
    char text[64], small[4];
    int i;
    CHECK(gasnett_getenv("ARGONET_C_TEXT") == NULL);
    CHECK(strcmp(gasnett_getenv_withdefault("ARGONET_C_TEXT", "else"), "else") == 0);
    CHECK(gasnett_getenv_withdefault("ARGONET_C_TEXT", NULL) == NULL);
    gasnett_setenv("ARGONET_C_TEXT", "given");
    CHECK(strcmp(gasnett_getenv("ARGONET_C_TEXT"), "given") == 0);
    CHECK(strcmp(getenv("ARGONET_C_TEXT"), "given") == 0);
    CHECK(strcmp(gasnett_getenv_withdefault("ARGONET_C_TEXT", "else"), "given") == 0);
    gasnett_unsetenv("ARGONET_C_TEXT");
    CHECK(gasnett_getenv("ARGONET_C_TEXT") == NULL);
    for (i = 0; i < 5; i++) CHECK(yes(yeses[i], 0) == 1 && yes(noes[i], 1) == 0);
    CHECK(yes("", 1) == 1 && yes("", 0) == 0);
    CHECK(number("42", 0, 0) == 42 && number("-7", 0, 0) == -7 && number("0x1F", 0, 0) == 31);
    CHECK(number("", 3, 0) == 3 && number(" ", -3, 1024) == -3);
    CHECK(number("3", 0, 1024) == 3072 && number("1.5", 0, 1024) == 1536 && number("1.5MB", 0, 1024) == 1572864);
    CHECK(number("10B", 0, 1024) == 10 && number("1 TB", 0, 1) == INT64_C(1) << 40 && number("2GB", 0, 1) == INT64_C(1) << 31);
    CHECK(decimal("1.5") == 1.5 && decimal("-1e4") == -1e4 && decimal("3/8") == 0.375 && decimal("") == -1);
    for (i = 0; i <= 61; i++) {
        int64_t value = INT64_C(1) << i;
        CHECK(gasnett_parse_int(gasnett_format_number(value, text, sizeof text, 1), 1) == value);
        CHECK(gasnett_parse_int(gasnett_format_number(value, text, sizeof text, 0), 0) == value);
        CHECK(gasnett_parse_int(gasnett_format_number(-value, text, sizeof text, 1), 1) == -value);
    }
    CHECK(gasnett_parse_int(gasnett_format_number(0, text, sizeof text, 1), 1) == 0);
    CHECK(strcmp(gasnett_format_number(65536, text, sizeof text, 1), "64 KB") == 0);
    CHECK(strcmp(gasnett_format_number(123456, small, sizeof small, 0), "123") == 0);
    printf("verbose %d\n", gasnett_verboseenv());
    gasnett_envint_display("ARGONET_C_SHOWN", 4096, 1, 1);
    gasnett_envint_display("ARGONET_C_SHOWN", 4096, 1, 1);
    gasnett_envstr_display("ARGONET_C_SHOWN_TEXT", "text", 0);
    gasnett_envdbl_display("ARGONET_C_SHOWN_DECIMAL", 0.5, 0);
    return 0;
}
